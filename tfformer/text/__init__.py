"""Whole texts around a function that translates sentences.

They have sentences, whitespace and markup.
"""

from tfformer.text.passages import Links as Links
from tfformer.text.segmentation import Segment as Segment
from tfformer.text.segmentation import segments as segments
from tfformer.text.translation import FORMATS as FORMATS
from tfformer.text.translation import Align as Align
from tfformer.text.translation import TextTranslator as TextTranslator
from tfformer.text.translation import translate_text as translate_text
from tfformer.text.xml_markup import XmlError as XmlError
