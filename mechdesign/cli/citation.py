"""What to cite."""

CITATION = """\
mechdesign: optimal privacy mechanisms, designed, proved and exported. Version 0.1.0.

Please cite it together with the papers whose methods you use:

Shokri: Privacy Games: Optimal User-Centric Data Obfuscation.
    Proceedings on Privacy Enhancing Technologies 2015(2), pages 299-315.
Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal Correlations.
    IEEE Transactions on Knowledge and Data Engineering 31(7), pages 1281-1295, 2019.
Cao, Xiao, Takagi, Xiong, Yoshikawa, Shen, Liu, Jin, Xu: PGLP: Customizable and Rigorous Location Privacy through
    Policy Graph. European Symposium on Research in Computer Security (ESORICS), 2020.
Xiao, Shen, Liu, Xiong, Jin, Xu: DPHMM: Customizable Data Release with Differential Privacy via Hidden Markov Model.
    arXiv preprint, 2016.
He, Machanavajjhala, Ding: Blowfish Privacy: Tuning Privacy-Utility Trade-offs using Policies.
    ACM SIGMOD International Conference on Management of Data, 2014.
"""
