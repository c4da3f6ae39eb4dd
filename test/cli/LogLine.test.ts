/** What a server logs, and where OpenTelemetry's variables send it. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, FiberId, FiberRefs, HashMap, List, type Logger, LogLevel } from "effect"
import { LogUnavailable } from "../../packages/log/src/log/EventLog.ts"
import * as TelemetryOptions from "../../packages/cli/src/config/TelemetryOptions.ts"
import { cleaned, logLine, secretsOf } from "../../packages/cli/src/terminal/Logs.ts"

const entry = (over: Partial<Logger.Logger.Options<unknown>> = {}): Logger.Logger.Options<unknown> => ({
  annotations: HashMap.empty(),
  cause: Cause.empty,
  context: FiberRefs.empty(),
  date: new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 6)),
  fiberId: FiberId.none,
  logLevel: LogLevel.Warning,
  message: ["it\nfailed\u001b[31m", new Error("why"), { a: 1 }],
  spans: List.empty(),
  ...over
})

const noted = HashMap.make(["sessionID", "ses_a"], ["tool\n", "bash sk-secret-value"])
const secrets = ["sk-secret-value"]

describe("the log", () => {
  it("CL-127: a line of text has time, level, message, session and cause, and nothing that a terminal obeys", () => {
    assert.strictEqual(logLine(entry(), "text", []), '2026-01-02T03:04:05.006Z warning it failed␛[31m: why: {"a":1}\n')
    const line = logLine(
      entry({ annotations: noted, cause: Cause.fail("no sk-secret-value"), logLevel: LogLevel.Error, message: "x" }),
      "text",
      secrets
    )
    assert.match(
      line,
      /^2026-01-02T03:04:05\.006Z error {3}x session=ses_a tool=bash \[secret\] cause="Error: no \[secret\][^\n]*"\n$/
    )
  })

  it("CL-127: of an expected error the line has the tag and the sentence, and no stack", () => {
    const refused = new Error("connect ECONNREFUSED")
    const cause = Cause.fail(new LogUnavailable({ operation: "read", reason: "away", cause: refused }))
    assert.strictEqual(
      logLine(entry({ cause, message: "x" }), "text", []),
      '2026-01-02T03:04:05.006Z warning x cause="LogUnavailable: the database could not read: it does not answer: connect ECONNREFUSED"\n'
    )
    assert.include(logLine(entry({ cause: Cause.parallel(cause, Cause.die(refused)) }), "text", []), " at ")
  })

  it("CL-30: nothing hidden, and nothing that a terminal obeys, is in a line, whatever part of it says so", () => {
    const hostile = "\u001b]52;c;x\u0007\u009b1A\u200b\u00ad\u202e\u2028\u{e0041}\ufe0f\ufeff\r\n▓"
    const each = entry({
      message: [hostile, new Error(hostile), { [hostile]: hostile }],
      cause: Cause.die(new Error(hostile)),
      annotations: HashMap.make(["sessionID", hostile], [hostile, hostile])
    })
    for (const format of ["text", "json"] as const) {
      const line = logLine(each, format, [])
      assert.notMatch(line.slice(0, -1), /[\u0000-\u001f\u007f-\u009f\u2028▓\p{Cf}]|\ufe0f/u)
      assert.include(line, "\\u{202e}")
    }
  })

  it("CL-127: a line of JSON has the same as fields, and none that is empty", () => {
    assert.deepStrictEqual(JSON.parse(logLine(entry({ message: "x" }), "json", [])), {
      time: "2026-01-02T03:04:05.006Z",
      level: "warning",
      message: "x"
    })
    const line = logLine(
      entry({ annotations: noted, cause: Cause.die(new Error("sk-secret-value\u0085")) }),
      "json",
      secrets
    )
    assert.notMatch(line.slice(0, -1), /[\u0000-\u001f\u007f-\u009f]|sk-secret/)
    const { annotations, cause, session } = JSON.parse(line)
    assert.strictEqual(session, "ses_a")
    assert.deepStrictEqual(annotations, { tool: "bash [secret]" })
    assert.include(cause, "Error: [secret]")
  })

  it.each([
    [LogLevel.Debug, "debug"],
    [LogLevel.Info, "info"],
    [LogLevel.Error, "error"],
    [LogLevel.Fatal, "error"]
  ])("CL-127: %o is called %s", (logLevel, level) => {
    assert.strictEqual(JSON.parse(logLine(entry({ logLevel }), "json", [])).level, level)
  })

  it("CL-127: secrets are the values of variables that are named so, and not short words", () => {
    const env = {
      OPENAI_API_KEY: "sk-1234567",
      OTEL_EXPORTER_OTLP_HEADERS: "a=bearer%20x",
      HOME: "/home/a",
      A_TOKEN: "short"
    }
    assert.deepStrictEqual(secretsOf(env), ["a=bearer%20x", "sk-1234567"])
  })

  it("CL-127: a failure has no key and no password, whoever named them", () => {
    const cause = Cause.fail(new Error("POST http://user:pass9word@host/v1: sk-ant-abcdefghij1234567890klmn is wrong"))
    const line = logLine(entry({ logLevel: LogLevel.Warning, cause }), "text", [])
    assert.include(line, "host/v1")
    assert.notMatch(line, /pass9word|abcdefghij/)
  })

  it("CL-128: what leaves the machine is cleaned in the same way", () => {
    const { annotations, cause, message } = cleaned(secrets)(
      entry({ message: "x sk-secret-value\u0007", annotations: noted, cause: Cause.fail("sk-secret-value") })
    )
    assert.strictEqual(message, "x [secret]␇")
    assert.isTrue(Cause.isEmpty(cause))
    assert.notInclude(JSON.stringify(HashMap.toEntries(annotations)), "sk-secret")
    assert.include(JSON.stringify(HashMap.toEntries(annotations)), "Error: [secret]")
  })
})

describe("the variables of OpenTelemetry", () => {
  const read = (env: Record<string, string>) => Effect.runSync(Effect.either(TelemetryOptions.read(env)))
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318/" }

  it("CL-128: nothing is exported without an endpoint, or when it is turned off", () => {
    for (const env of [{}, { OTEL_EXPORTER_OTLP_ENDPOINT: " " }, { ...endpoint, OTEL_SDK_DISABLED: "TRUE" }]) {
      assert.isFalse(TelemetryOptions.isWanted(env))
      const found = read(env)
      assert.isUndefined(found._tag === "Right" ? found.right : found.left)
    }
  })

  it("CL-128: an endpoint is for all signals, one of a signal is its own, with the headers of both", () => {
    const found = read({
      ...endpoint,
      OTEL_SERVICE_NAME: "book",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_HEADERS: "a=1,b=x%20y",
      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: "https://logs.test/in",
      OTEL_EXPORTER_OTLP_LOGS_HEADERS: "a=2",
      OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: "http/protobuf",
      OTEL_BSP_SCHEDULE_DELAY: "50",
      OTEL_METRICS_EXPORTER: "none"
    })
    assert.deepStrictEqual(found._tag === "Right" ? found.right : found.left, {
      resource: { serviceName: "book" },
      exporters: {
        traces: {
          protocol: "http/json",
          url: "http://127.0.0.1:4318/v1/traces",
          headers: { a: "1", b: "x y" },
          exportInterval: 50
        },
        logs: { protocol: "http/protobuf", url: "https://logs.test/in", headers: { a: "2", b: "x y" } }
      }
    })
    const named = read({ ...endpoint, OTEL_RESOURCE_ATTRIBUTES: "a=b,service.name=other" })
    assert.strictEqual(named._tag === "Right" ? named.right?.resource.serviceName : "", "other")
    const plain = read(endpoint)
    assert.strictEqual(plain._tag === "Right" ? plain.right?.resource.serviceName : "", "daybook")
    assert.strictEqual(plain._tag === "Right" ? plain.right?.exporters.logs?.protocol : "", "http/protobuf")
  })

  it.each([
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "not an address"],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
    ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "secret without equals"],
    ["OTEL_BSP_SCHEDULE_DELAY", "soon"]
  ])("CL-128: %s that cannot be used is named, its value is not", (name, value) => {
    const found = read({ ...endpoint, [name]: value })
    assert.match(found._tag === "Left" ? found.left : "", new RegExp(`^${name}: expected `))
    assert.notInclude(found._tag === "Left" ? found.left : value, value)
  })
})
