"""The citations that ``mechdesign --cite`` prints, as BibTeX; a test compares them with ``CITATION.cff``."""

from __future__ import annotations

from mechdesign.base._version import __version__

CITATION = f"""\
% If you use mechdesign, please cite it together with the papers whose methods you use.

@software{{mechdesign,
  author  = {{{{The mechdesign authors}}}},
  title   = {{mechdesign: optimal privacy mechanisms, designed, proved and exported}},
  version = {{{__version__}}},
  year    = {{2026}},
  license = {{MIT}}
}}

% Channels with distortion privacy, and optimal attacks.
@article{{shokri2015,
  author  = {{Shokri, Reza}},
  title   = {{Privacy Games: Optimal User-Centric Data Obfuscation}},
  journal = {{Proceedings on Privacy Enhancing Technologies}},
  volume  = {{2015}},
  number  = {{2}},
  pages   = {{299--315}},
  year    = {{2015}},
  doi     = {{10.1515/popets-2015-0024}}
}}

% Temporal leakage, and budgets that bound it.
@article{{cao2019,
  author  = {{Cao, Yang and Yoshikawa, Masatoshi and Xiao, Yonghui and Xiong, Li}},
  title   = {{Quantifying Differential Privacy in Continuous Data Release
             Under Temporal Correlations}},
  journal = {{IEEE Transactions on Knowledge and Data Engineering}},
  volume  = {{31}},
  number  = {{7}},
  pages   = {{1281--1295}},
  year    = {{2019}},
  doi     = {{10.1109/TKDE.2018.2824328}}
}}

% Policy graphs for locations.
@inproceedings{{cao2020,
  author    = {{Cao, Yang and Xiao, Yonghui and Takagi, Shun and Xiong, Li
               and Yoshikawa, Masatoshi and Shen, Yilin and Liu, Jinfei and Jin, Hongxia
               and Xu, Xiaofeng}},
  title     = {{PGLP: Customizable and Rigorous Location Privacy through Policy Graph}},
  booktitle = {{European Symposium on Research in Computer Security (ESORICS)}},
  year      = {{2020}},
  doi       = {{10.1007/978-3-030-58951-6_32}}
}}

% Released traces.
@article{{xiao2016,
  author  = {{Xiao, Yonghui and Shen, Yilin and Liu, Jinfei and Xiong, Li
             and Jin, Hongxia and Xu, Xiaofeng}},
  title   = {{DPHMM: Customizable Data Release with Differential Privacy
             via Hidden Markov Model}},
  journal = {{arXiv preprint}},
  year    = {{2016}},
  eprint  = {{1609.09172}},
  archiveprefix = {{arXiv}}
}}

% Policies on tables.
@inproceedings{{he2014,
  author    = {{He, Xi and Machanavajjhala, Ashwin and Ding, Bolin}},
  title     = {{Blowfish Privacy: Tuning Privacy-Utility Trade-offs using Policies}},
  booktitle = {{ACM SIGMOD International Conference on Management of Data}},
  year      = {{2014}},
  doi       = {{10.1145/2588555.2588581}}
}}

% Metric privacy for places, and planar Laplace noise.
@inproceedings{{andres2013,
  author    = {{Andrés, Miguel E. and Bordenabe, Nicolás E. and Chatzikokolakis, Konstantinos
               and Palamidessi, Catuscia}},
  title     = {{Geo-indistinguishability: Differential Privacy for Location-Based Systems}},
  booktitle = {{ACM Conference on Computer and Communications Security (CCS)}},
  year      = {{2013}},
  doi       = {{10.1145/2508859.2516735}}
}}

% Optimal channels under metric privacy.
@inproceedings{{bordenabe2014,
  author    = {{Bordenabe, Nicolás E. and Chatzikokolakis, Konstantinos and Palamidessi, Catuscia}},
  title     = {{Optimal Geo-Indistinguishable Mechanisms for Location Privacy}},
  booktitle = {{ACM Conference on Computer and Communications Security (CCS)}},
  year      = {{2014}},
  doi       = {{10.1145/2660267.2660345}}
}}

% The remap of noise to the best answers.
@article{{chatzikokolakis2017,
  author  = {{Chatzikokolakis, Konstantinos and ElSalamouny, Ehab and Palamidessi, Catuscia}},
  title   = {{Efficient Utility Improvement for Location Privacy}},
  journal = {{Proceedings on Privacy Enhancing Technologies}},
  volume  = {{2017}},
  number  = {{4}},
  pages   = {{308--328}},
  year    = {{2017}},
  doi     = {{10.1515/popets-2017-0051}}
}}

% The exponential mechanism.
@inproceedings{{mcsherry2007,
  author    = {{McSherry, Frank and Talwar, Kunal}},
  title     = {{Mechanism Design via Differential Privacy}},
  booktitle = {{IEEE Symposium on Foundations of Computer Science (FOCS)}},
  year      = {{2007}},
  doi       = {{10.1109/FOCS.2007.66}}
}}
"""
