"""Exports logs and spans with the Python exporters of OpenTelemetry, as an agent's process does.

    PROVOST_URL=… PROVOST_ORGANIZATION=… PROVOST_TOKEN=… venv/bin/python otlp.py

Needs what requirements.txt in this folder says. Prints how many records were accepted; exits 1 when a batch was not.
"""

import os
import sys
import time

from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

BASE = "{PROVOST_URL}/api/headless/v1/organizations/{PROVOST_ORGANIZATION}/otlp/v1/".format(**os.environ)
HEADERS = {"authorization": f"Bearer {os.environ['PROVOST_TOKEN']}"}
ACCEPTED = {"logs": 0, "spans": 0}


def checked(exporter, success, kind):
    """An exporter that notes what was accepted and ends the program when something was not."""
    export = exporter.export

    def export_and_note(batch, **options):
        result = export(batch, **options)
        if result != success:
            print(f"{kind}: {result}", file=sys.stderr, flush=True)
            os._exit(1)
        ACCEPTED[kind] += len(batch)
        return result

    exporter.export = export_and_note
    return exporter


def logs(count):
    provider = LoggerProvider(resource=Resource({"service.name": "claude-code"}))
    exporter = OTLPLogExporter(endpoint=BASE + "logs", headers=HEADERS, compression=Compression.Gzip)
    exporter = checked(exporter, LogRecordExportResult.SUCCESS, "logs")
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    logger = provider.get_logger("com.anthropic.claude_code.events")
    for number in range(count):
        attributes = {
            "event.name": "tool_result",
            "session.id": "from-a-real-exporter",
            "user.email": "ada@example.com",
            "tool_name": "Bash",
            "tool_use_id": f"toolu_{number}",
            "duration_ms": 20,
            "tool_input": '{"command": "ls"}',
        }
        logger.emit(LogRecord(timestamp=time.time_ns(), body="claude_code.tool_result", attributes=attributes))
    provider.shutdown()


def spans(count):
    provider = TracerProvider(resource=Resource({"service.name": "support-agent", "user.id": "bo"}))
    exporter = OTLPSpanExporter(endpoint=BASE + "traces", headers=HEADERS)
    provider.add_span_processor(BatchSpanProcessor(checked(exporter, SpanExportResult.SUCCESS, "spans")))
    tracer = provider.get_tracer("example")
    for number in range(count):
        with tracer.start_as_current_span("execute_tool refund") as span:
            span.set_attribute("gen_ai.operation.name", "execute_tool")
            span.set_attribute("gen_ai.tool.name", "refund")
            span.set_attribute("gen_ai.tool.call.id", f"call_{number}")
            span.set_attribute("gen_ai.tool.call.arguments", '{"order": "A-1"}')
    provider.shutdown()


logs(700)
spans(30)
print("accepted: {logs} logs, {spans} spans".format(**ACCEPTED))
