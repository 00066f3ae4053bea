"""Tells what tools the classes of a Python file are, without importing it, and runs one of them.

list FILE...        a JSON list on stdout: for each file its classes, or why it cannot be read
run FILE CLASS      arguments as a JSON object on stdin; {"result": ...} or {"error": "..."} on stdout
"""

import ast
import json
import os
import sys

# One parameter of these names, alone, takes all arguments as a dict.
WHOLE = {"params", "parameters", "args", "arguments", "input", "inputs", "data", "payload", "request"}
PLAIN = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "dict": {"type": "object"},
    "Dict": {"type": "object"},
    "Mapping": {"type": "object"},
    "list": {"type": "array"},
    "List": {"type": "array"},
    "Sequence": {"type": "array"},
    "Iterable": {"type": "array"},
    "set": {"type": "array", "uniqueItems": True},
    "Set": {"type": "array", "uniqueItems": True},
    "tuple": {"type": "array"},
    "Tuple": {"type": "array"},
    "None": {"type": "null"},
    "Path": {"type": "string"},
    "Decimal": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
}
HINTS = {"read_only": "readOnlyHint", "destructive": "destructiveHint",
         "idempotent": "idempotentHint", "open_world": "openWorldHint"}


def literal(node):
    """The value of a node that is written out; fails where it is not."""
    return ast.literal_eval(node)


def attributes(cls):
    """What a class says of itself in plain sight: class attributes, properties, and what `__init__` sets."""
    found = {}

    def note(name, node):
        try:
            found.setdefault(name, literal(node))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            pass

    for node in cls.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    note(target.id, node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            note(node.target.id, node.value)
        elif isinstance(node, ast.FunctionDef):
            if node.name == "__init__":
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Assign):
                        for target in inner.targets:
                            if (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
                                    and target.value.id == "self"):
                                note(target.attr, inner.value)
            elif any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list):
                for inner in node.body:
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        note(node.name, inner.value)
    return found


def name_of(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    return None


def parts(node):
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def schema(node):
    """The schema of an annotation; an empty one, which takes anything, where it is not known."""
    if node is None:
        return {}
    if isinstance(node, ast.Constant):
        if node.value is None:
            return {"type": "null"}
        if isinstance(node.value, str):
            try:
                return schema(ast.parse(node.value, mode="eval").body)
            except SyntaxError:
                return {}
        return {}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return either([node.left, node.right])
    if isinstance(node, ast.Subscript):
        name, inner = name_of(node.value), parts(node.slice)
        if name == "Optional":
            return either(inner + [ast.Constant(value=None)])
        if name == "Union":
            return either(inner)
        if name == "Literal":
            try:
                return {"enum": [literal(one) for one in inner]}
            except ValueError:
                return {}
        if name == "Annotated" and inner:
            found = schema(inner[0])
            words = [one.value for one in inner[1:] if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if words:
                found = dict(found, description=words[0])
            return found
        found = dict(PLAIN.get(name, {}))
        if found.get("type") == "array" and inner and name not in ("tuple", "Tuple"):
            items = schema(inner[0])
            if items:
                found["items"] = items
        if found.get("type") == "object" and len(inner) == 2:
            values = schema(inner[1])
            if values:
                found["additionalProperties"] = values
        return found
    return dict(PLAIN.get(name_of(node), {}))


def either(nodes):
    kinds = []
    for node in nodes:
        found = schema(node)
        for one in found.get("anyOf", [found]):
            if not one:
                return {}
            if one not in kinds:
                kinds.append(one)
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def told(function):
    """What the docstring says of each parameter, and before that of the whole."""
    text = ast.get_docstring(function) or ""
    words, inside, last = {}, False, None
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith(":param"):
            head, _, rest = bare[len(":param"):].partition(":")
            if head.split():
                words[head.split()[-1]] = rest.strip()
            continue
        if bare.rstrip(":：") in ("Args", "Arguments", "Parameters", "参数"):
            inside = True
            continue
        if inside and bare and not line.startswith((" ", "\t")):
            inside = False
        if inside and bare:
            mark = ":" if ":" in bare else "："
            head, found, rest = bare.partition(mark)
            key = head.split("(")[0].strip()
            if found and key.isidentifier():
                last = key
                words[key] = rest.strip()
            elif last:
                words[last] = (words[last] + " " + bare).strip()
    summary = text.strip().split("\n\n")[0].replace("\n", " ").strip()
    return summary, words


def arguments(function):
    """The schema of a function's arguments."""
    given = function.args
    positional = list(given.posonlyargs) + list(given.args)
    if positional and positional[0].arg in ("self", "cls"):
        positional = positional[1:]
    defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    named = list(zip(positional, defaults)) + list(zip(given.kwonlyargs, given.kw_defaults))
    free = given.kwarg is not None
    if len(named) == 1 and not free and takes_all(named[0][0]):
        return {"type": "object"}
    _, words = told(function)
    properties, required = {}, []
    for one, default in named:
        found = schema(one.annotation)
        if one.arg in words and words[one.arg]:
            found = dict(found, description=words[one.arg])
        if default is None:
            required.append(one.arg)
        else:
            try:
                value = literal(default)
                json.dumps(value)
                if value is not None:
                    found = dict(found, default=value)
            except (ValueError, TypeError):
                pass
        properties[one.arg] = found
    whole = {"type": "object", "properties": properties}
    if required:
        whole["required"] = required
    if not free:
        whole["additionalProperties"] = False
    return whole


def takes_all(parameter):
    kind = schema(parameter.annotation)
    return parameter.arg in WHOLE and (not kind or kind.get("type") == "object")


def describe(path):
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read(), filename=path)
    except (OSError, SyntaxError, ValueError, MemoryError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        return {"file": path, "classes": [], "error": str(getattr(error, "msg", None) or error), "line": line}
    classes = []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        execute = next((one for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
                        and one.name == "execute"), None)
        said = attributes(node)
        name, description = said.get("name"), said.get("description")
        if execute is None or not isinstance(name, str) or not name.strip():
            continue
        if not isinstance(description, str) or not description.strip():
            description = (ast.get_docstring(node) or told(execute)[0]).strip()
        if not description:
            continue
        own = next((said[key] for key in ("input_schema", "inputSchema", "parameters", "schema")
                    if isinstance(said.get(key), dict)), None)
        if own is not None and own.get("type", "object") != "object":
            own = None
        if own is not None and "properties" not in own and "type" not in own:
            own = {"type": "object", "properties": own} if all(isinstance(v, dict) for v in own.values()) else None
        hints = {wire: said[key] for key, wire in HINTS.items() if isinstance(said.get(key), bool)}
        tags = said.get("tags")
        classes.append({
            "class": node.name,
            "name": name.strip(),
            "description": description,
            "schema": own if own is not None else arguments(execute),
            "hints": hints,
            "tags": [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, (list, tuple)) else [],
            "line": node.lineno,
        })
    return {"file": path, "classes": classes, "error": None, "line": None}


def run(path, wanted):
    # What the code prints is no result: it goes to stderr.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        result = written(call(path, wanted))
    except SystemExit as error:
        result = json.dumps({"error": "it ended itself with " + repr(error.code)})
    except Failed as error:
        result = json.dumps({"error": str(error)}, ensure_ascii=False)
    except BaseException as error:
        import traceback
        traceback.print_exc()
        result = json.dumps({"error": type(error).__name__ + (": " + str(error) if str(error) else "")},
                            ensure_ascii=False)
    answer.write(result)
    answer.flush()


def written(value):
    """A result as JSON; whole or not at all."""
    try:
        return json.dumps({"result": value}, ensure_ascii=False, allow_nan=False, default=plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise Failed("execute returned what is no JSON (" + str(error) + "): return a text, a number, a list, "
                     "or a dict with texts as keys") from None


def plain(value):
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    for way in ("model_dump", "dict", "_asdict"):
        method = getattr(value, way, None)
        if callable(method):
            return method()
    if hasattr(value, "__dataclass_fields__"):
        import dataclasses
        return dataclasses.asdict(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "__fspath__"):
        return os.fspath(value)
    import decimal
    import enum
    import uuid
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return str(value)
    raise TypeError("an object of the class " + type(value).__name__)


def call(path, wanted):
    import importlib.util
    import inspect
    given = json.load(sys.stdin)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("skill_" + wanted, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    execute = getattr(module, wanted)().execute
    parameters = [one for one in inspect.signature(execute).parameters.values()]
    kinds = inspect.Parameter
    single = [one for one in parameters if one.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    if len(parameters) == 1 and single and single[0].name in WHOLE and single[0].name not in given:
        result = execute(given)
    else:
        result = execute(**given)
    if inspect.isawaitable(result):
        import asyncio

        async def wait():
            return await result
        result = asyncio.run(wait())
    if isinstance(result, dict) and result.get("success") is False and isinstance(result.get("error"), str):
        raise Failed(result["error"])
    return result


class Failed(Exception):
    pass


if __name__ == "__main__":
    if sys.argv[1] == "list":
        json.dump([describe(path) for path in sys.argv[2:]], sys.stdout)
    else:
        run(sys.argv[2], sys.argv[3])
