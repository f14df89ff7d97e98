"""Files and folders, local or in an object store, written completely or not at all."""
