from ._format import Exported as Exported
from ._format import Format as Format
from ._registry import register as register
