from mechdesign.leakage.loss import LossFunction, Pieces
__all__ = ["LossFunction", "Pieces"]
