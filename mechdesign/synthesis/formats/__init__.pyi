from ._format import Exported as Exported
from ._format import Format as Format
from ._registry import FORMATS as FORMATS
from ._registry import format_of as format_of
from ._registry import register as register
