"""The operators of a LiteRT model.

Builtin ones take the place of functions of the same name.
"""

from tensorflow.lite.python import schema_py_generated as schema

BUILTINS = schema.BuiltinOperator
# A function's name in the graph -> LiteRT's operator.
NAMED = {b"dynamic_update_slice": BUILTINS.DYNAMIC_UPDATE_SLICE}


def builtin_code(model: schema.ModelT, operator: schema.OperatorT) -> int:
    """Return the number of the builtin that an operator is."""
    known = model.operatorCodes[operator.opcodeIndex]
    return max(known.builtinCode, known.deprecatedBuiltinCode)


def operator_index(model: schema.ModelT, builtin: int, version: int) -> int:
    """Return the index of an operator code, adding it if it is missing."""
    for index, known in enumerate(model.operatorCodes):
        if (known.builtinCode, known.version) == (builtin, version):
            return index
    added = schema.OperatorCodeT()
    added.builtinCode = builtin
    added.deprecatedBuiltinCode = min(builtin, 127)
    added.version = version
    model.operatorCodes.append(added)
    return len(model.operatorCodes) - 1


def use_builtins(model: schema.ModelT) -> None:
    """Put LiteRT's operators in place of the graph's functions.

    A function is replaced if it is called like the operator.
    """
    for found in model.operatorCodes:
        if found.customCode in NAMED:
            found.builtinCode = NAMED[found.customCode]
            found.deprecatedBuiltinCode = 127  # look at builtinCode
            found.customCode = None
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            if builtin_code(model, operator) in NAMED.values():
                operator.builtinOptionsType = schema.BuiltinOptions.NONE
                operator.builtinOptions = None
                operator.customOptions = None
