"""Files and folders, local or in an object store, written whole or not at all."""
