"""A model that asks once for one tool and, when it has seen the tool's result, answers with a sentence.

It speaks the APIs of OpenAI and Anthropic, whole answers and streams, as far as clients need it here.
"""

import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RESULT = "Rain, says the station."
ANSWER = "It rains."
CALL = "call_1"
COUNT = itertools.count()
# What it was asked, as texts.
SEEN = []


class Model(BaseHTTPRequestHandler):
    tool = "get_weather"
    # Of a tool within a group of tools, as the API of answers has them: the group.
    group = None
    arguments = {"city": "Oslo"}

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer({"object": "list", "data": [], "models": []})

    def do_HEAD(self):
        self.answer({})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        text = json.dumps(asked)
        SEEN.append(text)
        tools = names_of(asked.get("tools") or [], self.group)
        done = CALL in text or self.tool not in tools
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            return self.answer({"input_tokens": 11})
        if path.endswith("/chat/completions"):
            return self.answer(chat(asked, done, self))
        if path.endswith("/responses"):
            return self.stream(responses_stream(asked, done, self)) if asked.get("stream") else self.answer(response(asked, done, self))
        if path.endswith("/messages"):
            said = message(asked, done, self)
            return self.stream(message_stream(said)) if asked.get("stream") else self.answer(said)
        self.answer({})

    def answer(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("request-id", f"req-{next(COUNT)}")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def stream(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("request-id", f"req-{next(COUNT)}")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self.close_connection = True


def name_of(tool):
    return tool.get("name") or (tool.get("function") or {}).get("name")


def names_of(tools, group):
    if group is None:
        return [name_of(tool) for tool in tools]
    inner = [tool.get("tools") or [] for tool in tools if tool.get("name") == group]
    return [name_of(tool) for tools in inner for tool in tools]


def chat(asked, done, model):
    call = {"id": CALL, "type": "function", "function": {"name": model.tool, "arguments": json.dumps(model.arguments)}}
    said = {"role": "assistant", "content": ANSWER} if done else {"role": "assistant", "content": None, "tool_calls": [call]}
    return {
        "id": f"chat-{int(done)}",
        "object": "chat.completion",
        "created": 1,
        "model": asked["model"],
        "choices": [{"index": 0, "message": said, "finish_reason": "stop" if done else "tool_calls"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def item(done, model):
    if done:
        text = {"type": "output_text", "text": ANSWER, "annotations": []}
        return {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [text]}
    return ({"namespace": model.group} if model.group else {}) | {
        "type": "function_call",
        "id": "f1",
        "call_id": CALL,
        "name": model.tool,
        "arguments": json.dumps(model.arguments),
        "status": "completed",
    }


def response(asked, done, model):
    return {
        "id": f"resp-{int(done)}",
        "object": "response",
        "created_at": 1,
        "model": asked["model"],
        "output": [item(done, model)],
        "status": "completed",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 11,
            "output_tokens": 7,
            "total_tokens": 18,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def responses_stream(asked, done, model):
    whole = response(asked, done, model)
    yield {"type": "response.created", "sequence_number": 0, "response": whole | {"output": [], "status": "in_progress"}}
    yield {"type": "response.output_item.done", "sequence_number": 1, "output_index": 0, "item": whole["output"][0]}
    yield {"type": "response.completed", "sequence_number": 2, "response": whole}


def message(asked, done, model):
    said = {"type": "text", "text": ANSWER} if done else {"type": "tool_use", "id": CALL, "name": model.tool, "input": model.arguments}
    return {
        "id": f"msg_{int(done)}",
        "type": "message",
        "role": "assistant",
        "model": asked.get("model"),
        "content": [said],
        "stop_reason": "end_turn" if done else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


def message_stream(whole):
    block = whole["content"][0]
    yield {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}}
    if block["type"] == "text":
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty, delta = block | {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


def start(tool="get_weather", arguments=None, group=None):
    """Returns the address of a model that asks for this tool, which may stand in a group of tools."""
    model = type("Asking", (Model,), {"tool": tool, "group": group, "arguments": arguments or {"city": "Oslo"}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
