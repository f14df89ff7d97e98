"""The operators of a LiteRT model.

Builtin ones take the place of functions of the same name.
"""

from tensorflow.lite.python import schema_py_generated as schema

BUILTINS = schema.BuiltinOperator
NAMED = {
    b"dynamic_update_slice": BUILTINS.DYNAMIC_UPDATE_SLICE
}  # a function's name in the graph -> LiteRT's operator


def code(model: schema.ModelT, operator: schema.OperatorT) -> int:
    """Return the number of the builtin that an operator is."""
    found = model.operatorCodes[operator.opcodeIndex]
    return max(found.builtinCode, found.deprecatedBuiltinCode)


def number(model: schema.ModelT, builtin: int, version: int) -> int:
    """Return the place of an operator in the model's list.

    The operator is added to the list if need be.
    """
    for place, found in enumerate(model.operatorCodes):
        if (found.builtinCode, found.version) == (builtin, version):
            return place
    added = schema.OperatorCodeT()
    added.builtinCode, added.deprecatedBuiltinCode, added.version = (
        builtin,
        min(builtin, 127),
        version,
    )
    model.operatorCodes.append(added)
    return len(model.operatorCodes) - 1


def use_builtins(model: schema.ModelT) -> None:
    """Put LiteRT's operators in place of the graph's functions.

    A function is replaced if it is called like the operator.
    """
    for found in model.operatorCodes:
        if found.customCode in NAMED:
            found.builtinCode = NAMED[found.customCode]
            found.deprecatedBuiltinCode, found.customCode = 127, None  # 127: look at builtinCode
    for operator in (operator for subgraph in model.subgraphs for operator in subgraph.operators):
        if code(model, operator) in NAMED.values():
            operator.builtinOptionsType, operator.builtinOptions = schema.BuiltinOptions.NONE, None
            operator.customOptions = None
