"""Writes the phrasebook into the package."""

from phrasebook.corpus import write_package_data

write_package_data()
