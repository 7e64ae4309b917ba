"""An agent that asks a model for the weather in Oslo, under one instrumentation; its spans go to the server.

Arguments: the instrumentation and the library. OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and …_HEADERS say where the spans go.
"""

import importlib
import os
import sys

import model

instrumentation, library = sys.argv[1:3]
base = model.start()
os.environ.update(
    OPENAI_API_KEY="k",
    ANTHROPIC_API_KEY="k",
    OPENAI_BASE_URL=base + "/v1",
    ANTHROPIC_BASE_URL=base,
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="span_only" if instrumentation == "opentelemetry" else "true",
    OTEL_SEMCONV_STABILITY_OPT_IN="gen_ai_latest_experimental",
    OPENAI_AGENTS_DISABLE_TRACING="0",
    LOGFIRE_IGNORE_NO_CONFIG="1",
    TRACELOOP_TRACE_CONTENT="true",
    # What says who runs it: the attributes of the resource, as an administrator sets them for a program.
    OTEL_SERVICE_NAME="weather-agent",
    OTEL_RESOURCE_ATTRIBUTES=f"user.email=ann@example.com,session.id={instrumentation}-{library}",
)

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

if instrumentation == "logfire":
    import logfire

    # It reads the same settings, and sends by itself.
    logfire.configure(send_to_logfire=False, console=False)
else:
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)

MODULES = {
    ("openllmetry", "openai"): ("opentelemetry.instrumentation.openai", "OpenAIInstrumentor"),
    ("openllmetry", "anthropic"): ("opentelemetry.instrumentation.anthropic", "AnthropicInstrumentor"),
    ("openllmetry", "langchain"): ("opentelemetry.instrumentation.langchain", "LangchainInstrumentor"),
    ("openllmetry", "openai-agents"): ("opentelemetry.instrumentation.openai_agents", "OpenAIAgentsInstrumentor"),
    ("openinference", "openai"): ("openinference.instrumentation.openai", "OpenAIInstrumentor"),
    ("openinference", "anthropic"): ("openinference.instrumentation.anthropic", "AnthropicInstrumentor"),
    ("openinference", "langchain"): ("openinference.instrumentation.langchain", "LangChainInstrumentor"),
    ("openinference", "openai-agents"): ("openinference.instrumentation.openai_agents", "OpenAIAgentsInstrumentor"),
    ("opentelemetry", "openai-agents"): ("opentelemetry.instrumentation.openai_agents", "OpenAIAgentsInstrumentor"),
}
if instrumentation == "logfire":
    getattr(logfire, "instrument_" + library.replace("-", "_"))()
else:
    module, name = MODULES[instrumentation, library]
    getattr(importlib.import_module(module), name)().instrument()

QUESTION = "Weather in Oslo?"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def openai():
    from openai import OpenAI

    client, tools = OpenAI(), [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    messages = [{"role": "user", "content": QUESTION}]
    asked = client.chat.completions.create(model="gpt-5", messages=messages, tools=tools).choices[0].message
    messages.append(asked.model_dump(exclude_none=True))
    messages.append({"role": "tool", "tool_call_id": model.CALL, "content": model.RESULT})
    client.chat.completions.create(model="gpt-5", messages=messages, tools=tools)


def anthropic():
    import anthropic

    client, tools = anthropic.Anthropic(), [{"name": "get_weather", "input_schema": SCHEMA}]
    messages = [{"role": "user", "content": QUESTION}]
    asked = client.messages.create(model="claude-sonnet-4-5", max_tokens=100, messages=messages, tools=tools)
    messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in asked.content]})
    result = {"type": "tool_result", "tool_use_id": model.CALL, "content": model.RESULT}
    messages.append({"role": "user", "content": [result]})
    client.messages.create(model="claude-sonnet-4-5", max_tokens=100, messages=messages, tools=tools)


def langchain():
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def get_weather(city: str) -> str:
        "Says how the weather is."
        return model.RESULT

    agent = create_agent(ChatOpenAI(model="gpt-5", use_responses_api=False), [get_weather])
    agent.invoke({"messages": [("user", QUESTION)]})


def openai_agents():
    from agents import Agent, Runner, function_tool

    @function_tool
    def get_weather(city: str) -> str:
        return model.RESULT

    Runner.run_sync(Agent(name="weather", model="gpt-5", tools=[get_weather]), QUESTION)


{"openai": openai, "anthropic": anthropic, "langchain": langchain, "openai-agents": openai_agents}[library]()
trace.get_tracer_provider().force_flush()
print("sent")
