"""Translate whole documents with any sentence translator, keeping whitespace and markup."""

from tfformer.text.formats.xml import XmlError as XmlError
from tfformer.text.glossary import Glossary as Glossary
from tfformer.text.glossary import Term as Term
from tfformer.text.placing import Links as Links
from tfformer.text.segmentation import Segment as Segment
from tfformer.text.segmentation import segments as segments
from tfformer.text.text_translator import FORMATS as FORMATS
from tfformer.text.text_translator import Align as Align
from tfformer.text.text_translator import TextTranslator as TextTranslator
