"""The faces of the rooms: what each says of itself, and the names that it shows. `name@module` says where a name stands
if two files of a room define one."""

FACES: dict[str, tuple[str, str]] = {}


def face(module, text, names=""):
    FACES[module] = (text.strip(), names)


face(
    "mechdesign",
    """
Design, prove@_verify and export optimal privacy mechanisms.

`design` finds the channel of least cost for a `Problem`, and proves it; `verify` checks what was written. Everything else
stands in the modules listed here. Names load on first use, so that verifying a bundle never imports a solver.
""",
)

face(
    "mechdesign.base",
    """
Tools without a subject, which every room may use.

Errors and warnings, checked arrays, registries, files that a crash cannot spoil, locks, caches and the state of the
process. Nothing here knows of privacy, of channels or of programs. It imports nothing of the package. Nothing here is
public; users catch errors by `mechdesign.base._errors`.
""",
)

face(
    "mechdesign.certify",
    """
The trusted kernel: it decides in exact arithmetic whether a bundle keeps its promises.

`verify` reads a folder and proves its claims again; `certify` does so for arrays in memory. The proofs use integers and
fractions alone, and every bound is rounded to the safe side. The room imports a few files of `base`, and NumPy, so that it
can be read and run on its own. `second_verifier` shares no code with it.
""",
    """Certificate Checked certify Evidence Multipliers PairMultipliers FloorMultipliers Claim PairBound RatioBound
ExponentBound Floor Stated Form Verified verify examine prove Bundle read@_bundle read_channel lower_bound@_bracket realised check Violation revealed@_revealed
expected_cost worst_cost distortion cost_per_secret forbidden_answer exact@_exact exact_text float_down float_up Dithered Slope""",
)

face(
    "mechdesign.solve",
    """
Programs as values, and solvers behind one contract.

A program is a linear, a linear-fractional or a block program; `solve` hands it to a solver by name, and `register` adds a
solver. `_blocks` holds the interior-point method for block programs, with its column generation. Nothing here knows of
privacy. The room imports `base` alone.
""",
    """Answer BackEnd BlockBackEnd Options Progress ProgressCallback Solution Solver Status available block_back_end find
measure@_contract register solve LinearProgram Residuals residuals FractionalProgram CharnesCooper charnes_cooper dinkelbach
BlockProgram FloorBlock WorstBlock BlockMultipliers RatioMultipliers""",
)

face(
    "mechdesign.model",
    """
The values that a question is made of: domains, priors, requirements, problems and channels.

A `Problem` has a prior, costs and requirements; each requirement states the bounds that a channel must keep. Distances
between places are in `distances`, and the words for them in `_words`. Other packages add kinds of requirements by
`register`. The room imports `certify`, which decides what a stated requirement means, and `base`.
""",
    """distances Domain Grid GridPart BoundingBox Plane Area Prior per_user MarkovChain VaryingChain OpenChain Ends chain_of
reversed_rows Channel Problem Origin largest_distortion Answers answers@_answers sample_at Outside Lattice Corners Between locate anchor_means
between Requirement Measured Words restricted RequirementKind Reading Epsilon MeasuredTable check_stated square with_fields register
KINDS load_extensions load_requirements MetricPrivacy ThresholdPrivacy GraphPrivacy DistortionPrivacy ContinuousPrivacy ClaimedPrivacy
graph_requirements Table Raw holds refers Distance@_grammar GraphTable MatrixFile EdgesFile BudgetsFile CountsFile PlacesFile""",
)

face(
    "mechdesign.data",
    """
Files of movement, matrices and budgets become checked arrays.

Check-ins, GPS traces, matrices, transition chains, budgets and maps are read here, with the form of each text found out
first. A row that cannot be used is counted and said. Errors name file, line and column, and print no cell. The room
imports `model`, `certify` and `base`.
""",
    """Points Trajectory Visits Written read_checkins read_places@_movement read_plt read_points read_trajectories to_grid read_matrix
read_chain_matrix read_labelled read_budgets read_exact_budgets write_budgets read_cost_curves read_weights Schedule States Steps as_states
as_steps read_states Resampled Sampling resample duration median_interval seconds_text sampled LeftOut RowError Outline read_outline""",
)

face(
    "mechdesign.graphs",
    """
Policy graphs: which secrets must not be told apart, whom that leaves exposed, and the problem under a graph.

Builders such as `blocks` and `threshold` return networkx graphs on the numbers of the secrets. `exposed` and `repair` find
and protect secrets that constraints leave alone, by sensitivity hulls. `problem` states the least-cost problem under a
graph, which `mechdesign.synthesis._design.design` solves. The room imports `model`, `certify` and `base`.
""",
    """problem Repair attribute blocks categories complete component_hulls components constrain degree_of_protection delta_set
disconnected excluded exposed from_edges hop_distance isolated line neighbours8 protectable protected_pairs repair sensitivity_hull
threshold transitions union hull_between hull_level hulls_between membership SensitivityHull Hull hull_of overview Overview""",
)

face(
    "mechdesign.synthesis",
    """
From a problem to a certified design, its bundle and its exports.

`design` splits a problem into parts, tries formulations and solvers in order, rounds the best answer to integers and
certifies it. A `Design` is written as a bundle by `save`, and read by `load`. `formats` holds the exports, and other
packages add theirs. The room imports `data`, `model`, `solve`, `certify` and `base`.
""",
    """formats Design design synthesise SolveSettings SolveSummary plan_anchors AnchorPlan CoarseRun Estimate Size size_of
estimate""",
)

face(
    "mechdesign.synthesis.formats",
    """
Formats in which a design is handed to other programs.

A `Format` makes files of a design; `register` adds one. CSV, JSON, NPZ, Parquet, MPS, GeoJSON and JavaScript are here.
""",
    "Exported FORMATS Format format_of register@_registry",
)

face(
    "mechdesign.mechanisms",
    """
Noise: laws, exact sampling, and exact channels of them.

Each mechanism has a `matrix` of its law in floats, a `channel` that is exact, and draws by `sample`. K-norm mechanisms fit
their noise to a policy graph. The discrete laws add noise to counts without any rounding. The room imports `graphs`,
`model`, `certify` and `base`.
""",
    """DiscreteGaussian DiscreteLaplace DiscreteNoise Exponential FiniteMechanism Geometric HullChoice KNormMechanism Laplace
MECHANISMS Mechanism MechanismKind PlanarIsotropic PlanarLaplace RandomisedResponse additive available find hops register snapping""",
)

face(
    "mechdesign.leakage",
    """
How much correlated releases leak, budgets that bound it, and the ledger.

`LossFunction` is the largest leakage that a step of a chain passes on, as pieces of a closed form; `temporal` adds it up
over time, and the budgets keep it below a bound. `cao2019` has the algorithms of the paper, for checks. `accounting` keeps
what was spent. The room imports `data`, `model`, `solve`, `certify` and `base`.
""",
    """accounting cao2019 Accountant BestBudgets BudgetWarning Candidates Correlation CorrelationWarning Correlations CostCurve Guarantees
LeakageExceededError Line LossFunction OpenChain Pieces StateError StateWarning User UsersLeakage Varying allocate_budget backward
best_budgets both_ways constant_budget correlations_from_traces forward fractional guarantees read_budgets row_pair_program smooth@mechdesign.model._markov
supremum temporal users window windows write_budgets""",
)

face(
    "mechdesign.measures",
    """
What any channel guarantees, leaks and costs.

`audit` finds the tight ε of a finite channel, the pairs that attain it, and what an adversary gains. `attack` has the
optimal attacks. Error measures and baselines for comparison stand beside them. The room imports `synthesis`, `mechanisms`,
`graphs` and what is below them.
""",
    """attack Audit PairLoss audit Tight Witness rates tight Rows exact_rows differs distances euclidean_error mismatch_error regions
root_mean_square_error""",
)

face(
    "mechdesign.traces",
    """
Release of traces in a hidden Markov model, step by step.

A `Trace` holds the belief of an adversary who knows the chain. Each step fixes graph, repair and mechanism before the true
state is read, draws an answer, spends its budget and updates the belief. `ReleasedTrace` is the result, as files. The room
imports `synthesis`, `mechanisms`, `leakage`, `graphs` and what is below them.
""",
    """AdversarialPrivacy Adversary Beliefs Composition Fitted History Release ReleasedTrace Stage Trace VaryingChain adversarial_level
adversarial_privacy compose compose_graphs degrees_against degrees_of expected_error hull_level level_against stage_level stages_of""",
)

face(
    "mechdesign.tables",
    """
Release of tables: policies, queries and strategies.

A `Policy` says which values of a record must not be told apart, and which counts are known; its sensitivities say how much
noise a query needs. Histograms, sums, ranges, clusterings and workloads are released with exact discrete noise. A `Strategy`
chooses what to measure. The room imports `synthesis`, `mechanisms`, `leakage` and what is below them.
""",
    """Attribute Budget ClusteringRelease Constraint ConstraintSensitivity CountCosts CumulativeRelease Description Distribution Domain
EdgeSpace Estimate ExplicitGraph LedgerPart NamedQuantile NamedRange NullGraph ParallelComposition Plan Option Policy Publication Published Quantile RangeNoise
RangePlan RangeTree RangeQueries MatrixQueries Release SecretGraph Sensitivity Strategy StrategyBound UnionGraph Workload budget_split cdf certified_bound compare_counts
constraint_sensitivity edge_space hierarchical identity all_ranges kmeans load marginal_constraints marginals optimal_attribute optimal_count ordered
ordered_error ordered_hierarchical parallel_composition part_of plan_cumulative plan_histogram plan_kmeans plan_ranges plan_sum plan_workload prefixes
quantile range_query release_cumulative release_histogram release_linear release_sum sensitivity strategy""",
)

face(
    "mechdesign.report",
    """
Pages and figures for every value below this room.

`save` writes a design, a released trace or a release from a table with its page; `html` returns the page alone. `figures`
holds the pictures, one function each. A page is one file without scripts from elsewhere. The room imports `measures`,
`traces`, `tables` and what is below them.
""",
    "figures save@_saving html@_saving save_truth@_saving",
)

face(
    "mechdesign.report._design_figures",
    """
Pictures of designs, graphs, traces, tables and leakage: each function returns a Matplotlib figure.

`save_figure` writes one so that equal figures give equal bytes.
""",
    "",
)

face(
    "mechdesign.specification",
    """
Specifications: TOML files that say what to design or to release.

`read_spec` reads one for designs and traces, `read` one for tables. A `Specification` makes the problem and the
design; paths in errors are those of the file. The grammar, its schema and the embedded examples stand here. The room
imports `traces`, `tables` and what is below them, and never `report`.
""",
    """Specification read_spec@_specification read_text parse@_specification from_tables tables_of schema Document SolverTable ReleaseSpecification ReleaseDocument read@_table_specification
PolicySettings ReleaseSettings Proposal propose""",
)

face(
    "mechdesign.runs",
    """
Many runs in one folder: benchmarks and sweeps.

`bench` compares solvers on families of problems, each run in a process of its own. `sweep` solves a grid of
specifications. Both write rows that are resumed and read back by `_store`. The room imports `report`, `specification` and
what is below them.
""",
    "bench sweep Row State",
)

face(
    "mechdesign.cli",
    """
The command line: one file for each command.

A command reads arguments, calls the library and shows the result; nothing is computed here. Commands load on first use, so
that `mechdesign verify` is quick. Wrong input ends with status 2 and one sentence. The room may import every other.
""",
)

DOOR = {
    "values": "Domain Prior MarkovChain Channel Problem Design Certificate Audit Ledger SolveSettings SolveSummary",
    "requirements": "MetricPrivacy ThresholdPrivacy GraphPrivacy DistortionPrivacy ContinuousPrivacy",
    "functions": "design verify audit read_spec plan_anchors",
    "modules": "distances graphs mechanisms leakage accounting measures attack data traces tables report figures specification solve bench sweep errors",
}
WHERE = {
    "Domain": "model",
    "Prior": "model",
    "MarkovChain": "model",
    "Channel": "model",
    "Problem": "model",
    "Design": "synthesis",
    "Certificate": "certify",
    "Audit": "measures",
    "Ledger": "leakage.accounting",
    "SolveSettings": "synthesis",
    "SolveSummary": "synthesis",
    "MetricPrivacy": "model",
    "ThresholdPrivacy": "model",
    "GraphPrivacy": "model",
    "DistortionPrivacy": "model",
    "ContinuousPrivacy": "model",
    "design": "synthesis",
    "verify": "certify",
    "audit": "measures",
    "read_spec": "specification",
    "plan_anchors": "synthesis",
    "distances": "model",
    "accounting": "leakage",
    "attack": "measures",
    "figures": "report",
    "bench": "runs",
    "sweep": "runs",
}
# Public modules that are files: the names that they show.
FILES = {
    "mechdesign/leakage/accounting.py": "Entry Ledger Partition PolicyTotals Totals MANIFEST begin_ledger check_folders Checked rho_of totals by_policy",
    "mechdesign/leakage/cao2019.py": None,
    "mechdesign/model/distances.py": None,
    "mechdesign/measures/attack.py": None,
    "mechdesign/certify/second_verifier.py": None,
    "mechdesign/runs/bench.py": "CONTESTANTS Contestant FAMILIES Family Results SUITES Suite Verdict export_mps run",
    "mechdesign/runs/sweep.py": "Moment Result Sweep parse read run",
}
