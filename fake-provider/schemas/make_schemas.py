#!/usr/bin/env python3
"""Write strict JSON Schemas (draft 2020-12) of the request bodies and of realtime client events.

Walks the TypedDict types of the installed official Python client and prints one
self-contained schema per endpoint. Run it in an environment that has `openai`:

    python make_schemas.py [outdir]

Rules
- every TypedDict becomes an object with additionalProperties false;
- Dict[str, X] stays an open map of X; `object` is anything (JSON Schema bodies, metadata...);
- a union whose objects carry a Literal `type` (or `role`) becomes a table of
  if/then rules on that tag, so a wrong field is reported against the one kind it belongs to;
- `X | str` model names collapse to string; Optional adds null;
- LIMITS below adds the documented numeric and length limits the Python types cannot express;
- an input item of a type the client does not know is any object with that type: newer servers
  take more kinds than this version of the client lists.
"""

import collections.abc as cabc
import hashlib
import json
import pathlib
import sys
import typing as t

import typing_extensions as te
import pydantic
from openai.types.realtime.realtime_client_event import RealtimeClientEvent
from openai.types.responses import response_create_params as rcp
from openai.types.audio import speech_create_params as scp
from openai.types.audio import transcription_create_params as tcp
from openai.types.chat import completion_create_params as ccp

# What the types demand but the live API does not: the reference sends assistant messages
# without id when the id is its own placeholder, and reasoning items without id under the
# "omit" policy.
NOT_REALLY_REQUIRED = {("ResponseOutputMessageParam", "id"), ("ResponseReasoningItemParam", "id")}
# (definition class name, field) -> extra keywords. Class "Body" is the request itself.
LIMITS = {
    ("Body", "temperature"): {"minimum": 0, "maximum": 2},
    ("Body", "top_p"): {"minimum": 0, "maximum": 1},
    ("Body", "top_logprobs"): {"minimum": 0, "maximum": 20},
    ("Body", "max_output_tokens"): {"minimum": 16},
    ("Body", "max_tool_calls"): {"minimum": 1},
    ("Body", "max_completion_tokens"): {"minimum": 1},
    ("Body", "max_tokens"): {"minimum": 1},
    ("Body", "frequency_penalty"): {"minimum": -2, "maximum": 2},
    ("Body", "presence_penalty"): {"minimum": -2, "maximum": 2},
    ("Body", "n"): {"minimum": 1, "maximum": 128},
    ("Body", "metadata"): {"maxProperties": 16, "propertyNames": {"maxLength": 64},
                            "additionalProperties": {"type": "string", "maxLength": 512}},
    ("Body", "messages"): {"minItems": 1},
    ("Body", "stop"): {"minItems": 1, "maxItems": 4},
    ("Body", "functions"): {"minItems": 1, "maxItems": 128},
    ("Body", "context_management"): {"minItems": 1},
    **{(c, "content"): {"minItems": 1} for c in (
        "ChatCompletionUserMessageParam", "ChatCompletionSystemMessageParam", "ChatCompletionDeveloperMessageParam",
        "ChatCompletionAssistantMessageParam", "ChatCompletionToolMessageParam")},
    ("NamespaceToolParam", "tools"): {"minItems": 1},
    ("NamespaceToolParam", "name"): {"minLength": 1},
    **{(c, "call_id"): {"minLength": 1, "maxLength": 64} for c in (
        "ComputerCallOutput", "ToolSearchCall", "ResponseToolSearchOutputItemParamParam", "ShellCall", "ShellCallOutput",
        "ApplyPatchCall", "ApplyPatchCallOutput", "Program", "ProgramOutput")},
    ("Body", "safety_identifier"): {"maxLength": 128},
    ("FunctionToolParam", "name"): {"minLength": 1, "maxLength": 128, "pattern": "^[a-zA-Z0-9_-]+$"},
    ("FunctionDefinition", "name"): {"minLength": 1, "maxLength": 64, "pattern": "^[a-zA-Z0-9_-]+$"},
    ("ResponseFunctionToolCallParam", "name"): {"minLength": 1, "maxLength": 128, "pattern": "^[a-zA-Z0-9_-]+$"},
    ("ResponseFunctionToolCallParam", "call_id"): {"minLength": 1, "maxLength": 64},
    ("FunctionCallOutput", "call_id"): {"minLength": 1, "maxLength": 64},
    ("ResponseFormatTextJSONSchemaConfigParam", "name"): {"minLength": 1, "maxLength": 64, "pattern": "^[a-zA-Z0-9_-]+$"},
    ("JSONSchema", "name"): {"minLength": 1, "maxLength": 64, "pattern": "^[a-zA-Z0-9_-]+$"},
    ("ChatCompletionAssistantMessageParam", "tool_calls"): {"minItems": 1},
    ("ChatCompletionToolMessageParam", "tool_call_id"): {"minLength": 1},
}
# The audio requests have fields of the same names with other limits.
SPEECH_LIMITS = {
    "input": {"minLength": 1, "maxLength": 4096},
    "instructions": {"maxLength": 4096},
    "speed": {"minimum": 0.25, "maximum": 4},
}
NONE = type(None)
TAGS = ("type", "role")


# A file of a form, as `src/form.rs` writes it.
FILE = {"type": "object", "additionalProperties": False, "required": ["filename", "content_type", "bytes"],
        "properties": {"filename": {"type": "string", "pattern": "\\.(flac|mp3|mp4|mpeg|mpga|m4a|ogg|wav|webm)$"},
                       "content_type": {"type": "string", "minLength": 1}, "bytes": {"type": "integer", "minimum": 1}}}


def is_td(x):
    return isinstance(x, type) and hasattr(x, "__required_keys__") and issubclass(x, dict)


def unwrap(a):
    """Peel Required/NotRequired/Annotated/ReadOnly; say whether Required was seen."""
    req = None
    while True:
        o = t.get_origin(a)
        if o in (te.Required, t.Required):
            req, a = True, t.get_args(a)[0]
        elif o in (te.NotRequired, t.NotRequired):
            req, a = False, t.get_args(a)[0]
        elif o in (te.Annotated, t.Annotated):
            a = t.get_args(a)[0]
        elif isinstance(a, (getattr(te, "TypeAliasType", ()),)):
            a = a.__value__
        else:
            return a, req


def fields(td):
    hints = te.get_type_hints(td, include_extras=True)
    owner = {}
    for c in reversed(td.__mro__):
        for k in c.__dict__.get("__annotations__", {}):
            owner[k] = c
    # TypedDict flattens its MRO; total of the class itself is the best we have for own keys.
    total = getattr(td, "__total__", True)
    out = {}
    for k, a in hints.items():
        inner, req = unwrap(a)
        if req is None:
            req = bool(total) and k in td.__dict__.get("__annotations__", {}) and not any(
                k in getattr(b, "__annotations__", {}) for b in getattr(td, "__orig_bases__", ()) if is_td(b))
        out[k] = (inner, bool(req))
    return out


def flat(a):
    a, _ = unwrap(a)
    o = t.get_origin(a)
    if o is t.Union or str(o) == "<class 'types.UnionType'>":
        r = []
        for x in t.get_args(a):
            r += [y for y in flat(x) if y not in r]
        return r
    return [a]


class Gen:
    def __init__(self):
        self.defs, self.names = {}, {}

    def ref(self, td):
        if td not in self.names:
            n = td.__name__
            while n in self.names.values():
                n = td.__module__.rsplit(".", 1)[1].title().replace("_", "") + n if not n.startswith("x_") else n + "_"
                if n in self.names.values():
                    n = "x_" + n
            self.names[td] = n
            self.defs[n] = None
            self.defs[n] = self.obj(td, td.__name__)
        return {"$ref": "#/$defs/" + self.names[td]}

    def obj(self, td, cls):
        props, req = {}, []
        for k, (a, r) in sorted(fields(td).items()):
            s = self.of(a)
            lim = LIMITS.get((cls, k))
            if lim:
                s = self.limit(s, lim)
            props[k] = s
            if r and (cls, k) not in NOT_REALLY_REQUIRED:
                req.append(k)
        out = {"type": "object", "properties": props, "additionalProperties": False}
        if req:
            out["required"] = req
        return out

    @staticmethod
    def limit(s, lim):
        return {**s, **lim}   # numeric/length keywords ignore values of another type (null)

    def of(self, a):
        kinds = flat(a)
        return self.one(kinds[0]) if len(kinds) == 1 else self.union(kinds)

    def one(self, a):
        o, args = t.get_origin(a), t.get_args(a)
        if is_td(a):
            return self.ref(a)
        if a in (object, t.Any):
            return True
        if a is NONE:
            return {"type": "null"}
        if a is str:
            return {"type": "string"}
        if a is bool:
            return {"type": "boolean"}
        if a is int:
            return {"type": "integer"}
        if a is float:
            return {"type": "number"}
        if o in (t.Literal, te.Literal):
            return {"const": args[0]} if len(args) == 1 else {"enum": list(args)}
        if o in (dict, cabc.Mapping, cabc.MutableMapping):
            v = self.of(args[1])
            return {"type": "object"} if v is True else {"type": "object", "additionalProperties": v}
        if o in (list, cabc.Iterable, cabc.Sequence, tuple) or getattr(o, "__name__", "") == "SequenceNotStr":
            return {"type": "array", "items": self.of(args[0])}
        if isinstance(a, t.TypeVar):
            return True
        if a is bytes or getattr(a, "__name__", "") in ("PathLike", "IO"):
            return FILE
        raise TypeError(f"no rule for {a!r}")

    def union(self, kinds):
        tds = [k for k in kinds if is_td(k)]
        rest = [k for k in kinds if not is_td(k)]
        if str in rest:                       # str | Literal[...] is just a string
            rest = [k for k in rest if t.get_origin(k) not in (t.Literal, te.Literal)]
        opts = []
        for k in rest:
            s = self.one(k)
            if s is True:
                return True
            if s not in opts:
                opts.append(s)
        prim = [s["type"] for s in opts if set(s) == {"type"}]
        if len(prim) > 1:
            opts = [s for s in opts if set(s) != {"type"}] + [{"type": prim}]
        # Literal | null folds into one enum
        lits = [s for s in opts if "enum" in s or "const" in s]
        if lits and len(lits) + sum(s == {"type": "null"} for s in opts) == len(opts) and len(opts) > 1:
            vals = []
            for s in lits:
                vals += s.get("enum", [s.get("const")])
            if {"type": "null"} in opts:
                vals.append(None)
            opts = [{"enum": vals}]
        if len(tds) == 1:
            opts.append(self.ref(tds[0]))
        elif tds:
            opts.append(self.tagged(tds))
        return opts[0] if len(opts) == 1 else {"anyOf": opts}

    def tagged(self, tds):
        for tag in TAGS:
            table, absent, ok = {}, [], True
            for td in tds:
                f = fields(td).get(tag)
                if f is None:
                    ok = False
                    break
                vals = []
                for k in flat(f[0]):
                    if t.get_origin(k) in (t.Literal, te.Literal):
                        vals += t.get_args(k)
                    elif k is NONE:
                        vals.append(None)
                    else:
                        ok = False
                for v in vals:
                    table.setdefault(v, []).append(td)
                if not f[1]:
                    absent.append(td)
            if ok:
                return self.table(tag, table, absent)
        return {"anyOf": [self.ref(td) for td in tds]}

    def table(self, tag, table, absent):
        def pick(tl):
            rs = [self.ref(x) for x in tl]
            return rs[0] if len(rs) == 1 else {"anyOf": rs}
        groups = {}
        for v, tl in table.items():
            groups.setdefault(tuple(id(x) for x in tl), (tl, []))[1].append(v)
        rules = []
        for tl, vals in groups.values():
            rules.append({"if": {"required": [tag], "properties": {tag: {"const": vals[0]} if len(vals) == 1 else {"enum": vals}}},
                          "then": pick(tl)})
        head = {"type": "object", "properties": {tag: {"enum": list(table)}}}
        if absent:
            rules.append({"if": {"not": {"required": [tag]}}, "then": pick(absent)})
        else:
            head["required"] = [tag]
        head["allOf"] = rules
        # one definition per distinct table, so that it is written once
        key = "Any" + hashlib.sha1(json.dumps(head, sort_keys=True).encode()).hexdigest()[:6]
        self.defs.setdefault(key, head)
        return {"$ref": "#/$defs/" + key}


def rename_tables(doc):
    """Give the shared tag tables readable names: by their first member and size."""
    txt = json.dumps(doc)
    used = set(doc["$defs"])
    for k in [k for k in doc["$defs"] if k.startswith("Any") and len(k) == 9]:
        d = doc["$defs"][k]
        vals = [v for v in next(iter(d["properties"].values()))["enum"] if v]
        n = f"OneOf{len(vals)}_{vals[0]}"
        while n in used:
            n += "_"
        used.add(n)
        txt = txt.replace(f'"#/$defs/{k}"', f'"#/$defs/{n}"').replace(f'"{k}": {{', f'"{n}": {{')
    return json.loads(txt)


def prune(doc):
    """Drop definitions nothing reaches."""
    live, todo = set(), [{k: v for k, v in doc.items() if k != "$defs"}]
    while todo:
        n = todo.pop()
        if isinstance(n, dict):
            r = n.get("$ref")
            if isinstance(r, str):
                k = r.rsplit("/", 1)[1]
                if k not in live:
                    live.add(k)
                    todo.append(doc["$defs"][k])
            todo += [v for v in n.values() if isinstance(v, (dict, list))]
        elif isinstance(n, list):
            todo += n
    doc["$defs"] = {k: v for k, v in doc["$defs"].items() if k in live}
    return doc


def body(gen, variants, must, extra_rules):
    merged = {"type": "object", "properties": {}, "additionalProperties": False}
    for v in variants:
        o = gen.obj(v, "Body")
        for k, s in o["properties"].items():
            if k not in merged["properties"]:
                merged["properties"][k] = s
    merged["properties"]["stream"] = {"type": ["boolean", "null"]}
    merged["required"] = must
    merged["allOf"] = extra_rules
    return merged


def open_items(doc):
    """Let input items of an unknown type pass: any object with a text for its type."""
    options = doc["properties"]["input"]["anyOf"]
    (items,) = [option["items"] for option in options if option.get("type") == "array"]
    table = doc["$defs"][items["$ref"].rsplit("/", 1)[1]]
    table["properties"]["type"] = {"type": ["string", "null"]}


def write(path, gen, b, ident, closed=False):
    doc = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ident, **b,
           "$defs": dict(sorted(gen.defs.items()))}
    doc = prune(rename_tables(doc))
    if "input" in doc["properties"] and not closed:
        open_items(doc)
    path.write_text(json.dumps(doc, ensure_ascii=False, separators=(",", ":"), sort_keys=False) + "\n")
    print(path, path.stat().st_size, "bytes,", len(doc["$defs"]), "definitions")


def transcription_body(g):
    """The fields of the form. Its values are texts, so numbers and booleans are texts here."""
    names = fields(tcp.TranscriptionCreateParamsBase)
    spoken = {"type": "object", "properties": {}, "additionalProperties": False,
              "required": sorted(name for name, (_, required) in names.items() if required)}
    for name, (kind, _) in sorted(names.items()):
        if name == "file":
            s = FILE
        else:
            s = g.of(kind)
            if s.get("type") in ("number", "boolean", "integer"):
                s = {"type": "string"}
        spoken["properties"][name] = s
    spoken["properties"]["stream"] = {"enum": ["true", "false"]}
    return spoken


def nonnull(k):
    return {"required": [k], "properties": {k: {"not": {"type": "null"}}}}


def strict(node):
    """The schema without words, refusing fields that a type does not list."""
    if isinstance(node, list):
        return [strict(n) for n in node]
    if not isinstance(node, dict):
        return node
    kept = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            kept[key] = {k: strict(v) for k, v in value.items()}
        elif key not in ("title", "description", "default", "discriminator"):
            kept[key] = strict(value)
    if "properties" in kept:
        kept["additionalProperties"] = False
    return kept


def write_realtime(path):
    """The client events of a realtime session, from the models of the official client: their fields may
    be null where they are optional, which the TypedDict types do not say."""
    doc = strict(pydantic.TypeAdapter(RealtimeClientEvent).json_schema())
    doc = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:openai:realtime:client", **doc}
    path.write_text(json.dumps(doc, ensure_ascii=False, separators=(",", ":"), sort_keys=False) + "\n")
    print(path, path.stat().st_size, "bytes,", len(doc["$defs"]), "definitions")


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    out.mkdir(parents=True, exist_ok=True)
    stream_true = {"required": ["stream"], "properties": {"stream": {"const": True}}}
    g = Gen()
    write(out / "responses_request.json", g, body(
        g, [rcp.ResponseCreateParamsNonStreaming, rcp.ResponseCreateParamsStreaming], [],
        [
            # a model, or a prompt that names one
            {"anyOf": [{"required": ["model"]}, nonnull("prompt")]},
            # something to answer
            {"anyOf": [{"required": ["input"]}, nonnull("prompt"), nonnull("previous_response_id"), nonnull("conversation")]},
            # the two kinds of server-held history exclude each other
            {"not": {"allOf": [nonnull("previous_response_id"), nonnull("conversation")]}},
            {"if": nonnull("stream_options"), "then": stream_true},
        ]), "urn:openai:responses:create")
    g = Gen()
    write(out / "chat_request.json", g, body(
        g, [ccp.CompletionCreateParamsNonStreaming, ccp.CompletionCreateParamsStreaming], ["messages", "model"],
        [
            {"if": nonnull("stream_options"), "then": stream_true},
            {"if": nonnull("top_logprobs"), "then": {"required": ["logprobs"], "properties": {"logprobs": {"const": True}}}},
            {"if": nonnull("parallel_tool_calls"), "then": {"required": ["tools"], "properties": {"tools": {"minItems": 1}}}},
            {"if": {"allOf": [nonnull("tool_choice"), {"properties": {"tool_choice": {"not": {"enum": ["none", "auto"]}}}}]},
             "then": {"anyOf": [{"required": ["tools"], "properties": {"tools": {"minItems": 1}}}, {"required": ["functions"]}]}},
        ]), "urn:openai:chat:completions:create")
    g = Gen()
    speech = g.obj(scp.SpeechCreateParams, "Speech")
    for name, limits in SPEECH_LIMITS.items():
        speech["properties"][name] = g.limit(speech["properties"][name], limits)
    write(out / "speech_request.json", g, speech, "urn:openai:audio:speech:create", closed=True)
    g = Gen()
    transcription = transcription_body(g)
    write(out / "transcription_request.json", g, transcription, "urn:openai:audio:transcriptions:create", closed=True)
    write_realtime(out / "realtime_client_event.json")


main()
