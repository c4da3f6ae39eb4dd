import { AiError } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"
import { redactSecrets } from "../../packages/log/src/support/Redaction.ts"

const request = {
  method: "POST" as const,
  url: "https://user:pass@api.example.test/v1/messages?key=topsecret",
  urlParams: [],
  hash: Option.none(),
  headers: { "x-api-key": "topsecret" }
}
const response = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  new AiError.HttpResponseError({
    module: "Test",
    method: "streamText",
    reason: "StatusCode",
    request,
    response: { status, headers },
    body: typeof body === "string" ? body : JSON.stringify(body)
  })

describe("classifyError", () => {
  it("MD-30: a failure says where, with which status, and in the provider's words", () => {
    const failure = classifyError(response(400, { error: { type: "invalid_request_error", message: "Bad input." } }))
    assert.deepInclude(failure, {
      message: "api.example.test answered HTTP 400: Bad input.",
      retryable: false,
      overflow: false,
      statusCode: 400
    })
  })

  it("MD-30, MD-34: after a 404 the path and the model are named, without what may be a key", () => {
    const url = "https://user:pass@api.example.test/v2/chat/completions?key=secret#part"
    const answer = { error: { message: "no such thing", code: "model_not_found" } }
    const sentence =
      "api.example.test/v2/chat/completions answered HTTP 404 to a request for the model m: no such thing"
    const { method, module, reason } = response(404, answer)
    const failure = new AiError.HttpResponseError({
      module,
      method,
      reason,
      request: { ...request, url },
      response: { status: 404, headers: {} },
      body: JSON.stringify(answer)
    })
    assert.strictEqual(classifyError(failure, "m").message, sentence)
    assert.strictEqual(
      classifyError({ statusCode: 404, url, responseBody: JSON.stringify(answer) }, "m").message,
      sentence
    )
    assert.match(classifyError(response(400, answer), "m").message, /^api\.example\.test answered HTTP 400: /)
  })

  for (const [server, status, body] of [
    [
      "Anthropic",
      400,
      {
        type: "error",
        error: { type: "invalid_request_error", message: "prompt is too long: 208310 tokens > 200000 maximum" }
      }
    ],
    [
      "Anthropic",
      400,
      { error: { message: "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000" } }
    ],
    [
      "Anthropic",
      413,
      { type: "error", error: { type: "request_too_large", message: "Request exceeds the maximum size" } }
    ],
    [
      "OpenAI",
      400,
      { error: { code: "context_length_exceeded", message: "Too many tokens.", type: "invalid_request_error" } }
    ],
    ["OpenAI", 400, { error: { message: "Your input exceeds the context window of this model.", code: null } }],
    [
      "llama.cpp",
      400,
      {
        error: {
          code: 400,
          type: "exceed_context_size_error",
          message: "the request exceeds the available context size, try increasing it"
        }
      }
    ],
    [
      "vLLM",
      400,
      {
        object: "error",
        message: "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        code: 400
      }
    ],
    ["Ollama", 400, { error: "input length exceeds the context length" }],
    ["LM Studio", 400, "The number of tokens to keep from the initial prompt is greater than the context length"]
  ] as const) {
    it(`MD-31: ${server}'s ${status} for a context that is too long is an overflow, never retryable: ${JSON.stringify(body).slice(0, 60)}`, () => {
      const failure = classifyError(response(status, body))
      assert.isTrue(failure.overflow)
      assert.isFalse(failure.retryable)
      assert.strictEqual(failure.statusCode, status)
    })
  }

  it("MD-31: a token rate limit is not an overflow, whatever its words", () => {
    const failure = classifyError(
      response(429, { error: { message: "Please reduce the length of the messages", code: "rate_limit_exceeded" } })
    )
    assert.isFalse(failure.overflow)
    assert.isTrue(failure.retryable)
  })

  for (const [status, retryable] of [
    [400, false],
    [401, false],
    [403, false],
    [404, false],
    [408, true],
    [422, false],
    [429, true],
    [499, true],
    [500, true],
    [502, true],
    [503, true],
    [529, true]
  ] as const) {
    it(`MD-32: status ${status} is ${retryable ? "" : "not "}retryable`, () => {
      assert.strictEqual(classifyError(response(status, { error: { message: "no" } })).retryable, retryable)
    })
  }

  it.each([307, 431])("MD-30: an answer with status %i and without a body has no details", (status) => {
    const { message } = classifyError(response(status, ""))
    assert.strictEqual(message, `api.example.test answered HTTP ${status}: no further details`)
  })

  it("MD-32: an exhausted account is refused with 429 and not retryable", () => {
    assert.isFalse(
      classifyError(response(429, { error: { code: "insufficient_quota", message: "no money" } })).retryable
    )
  })

  it.each([
    ["other side closed", "the connection was cut before the answer was complete"],
    ["terminated", "the connection was cut before the answer was complete"],
    ["the connection was reset", "the connection was reset"]
  ])("MD-30: a broken connection is told in words for people: %s", (cause, words) => {
    const { message } = classifyError(
      new AiError.HttpRequestError({ module: "T", method: "m", reason: "Transport", request, cause: new Error(cause) })
    )
    assert.strictEqual(message, `api.example.test: ${words}`)
  })

  it("MD-32: a broken connection is retryable, an address that cannot be is not", () => {
    const error = (reason: "Transport" | "InvalidUrl") =>
      new AiError.HttpRequestError({ module: "T", method: "m", reason, request })
    assert.isTrue(classifyError(error("Transport")).retryable)
    assert.isFalse(classifyError(error("InvalidUrl")).retryable)
    assert.isTrue(
      classifyError(
        new AiError.HttpResponseError({
          module: "T",
          method: "m",
          reason: "Decode",
          request,
          response: { status: 200, headers: {} }
        })
      ).retryable
    )
    assert.isTrue(
      classifyError(new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "ECONNREFUSED" }) }))
        .retryable
    )
  })

  for (const [form, error, retryable, overflow] of [
    ["Anthropic's overloaded", { type: "overloaded_error", message: "Overloaded" }, true, false],
    [
      "Anthropic's whole event",
      { type: "error", error: { type: "rate_limit_error", message: "slow down" } },
      true,
      false
    ],
    ["Anthropic's invalid request", { type: "invalid_request_error", message: "no" }, false, false],
    ["OpenAI's server error", { type: "error", code: "server_error", message: "oops", param: null }, true, false],
    ["OpenAI's overflow", { type: "error", code: "context_length_exceeded", message: "oops" }, false, true],
    ["llama.cpp's numeric code", { error: { code: 500, message: "slot failed", type: "server_error" } }, true, false],
    ["a plain text", "prompt is too long", false, true],
    ["nothing at all", undefined, false, false]
  ] as const) {
    it(`MD-33: an error part is read as well: ${form}`, () => {
      const failure = classifyError(error)
      assert.deepStrictEqual([failure.retryable, failure.overflow], [retryable, overflow])
      assert.notStrictEqual(failure.message, "")
    })
  }

  it("MD-33: malformed output is not retryable", () => {
    assert.isFalse(
      classifyError(new AiError.MalformedOutput({ module: "T", method: "m", description: "not JSON" })).retryable
    )
  })

  const at = "Wed, 21 Oct 2026 07:28:30 GMT"
  const date = "Wed, 21 Oct 2026 07:28:00 GMT"
  const longest = Math.floor(Number.MAX_SAFE_INTEGER / 1000)
  for (const [headers, wait, until] of [
    [{ "retry-after-ms": "250", "retry-after": "9" }, 250],
    [{ "Retry-After": "1.5" }, 1500],
    [{ "retry-after": "60" }, 60_000],
    [{ "retry-after": at, date }, 30_000],
    [{ "retry-after": "Wednesday, 21-Oct-26 07:28:30 GMT", date }, 30_000],
    [{ "retry-after": "Wed Oct 21 07:28:30 2026", date }, 30_000],
    [{ "retry-after": "2026-10-21T07:28:30Z", date }, 30_000],
    [{ "retry-after": at, date: "yesterday" }, undefined, Date.parse(at)],
    [{ "retry-after": at }, undefined, Date.parse(at)],
    [{ "retry-after": "Wed, 21 Oct 2020 07:28:00 GMT", date }, 0],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "9".repeat(400) }, longest * 1000],
    [{ "retry-after-ms": "9".repeat(20) }, longest],
    [{ "retry-after-ms": "-5", "retry-after": "2" }, 2000],
    ...["-5", "-0.1", "NaN", "Infinity", "1e3", "0x10", "", "soon", "Wed", "5 apples", "60, 60"].map(
      (text) => [{ "retry-after": text, date }, undefined] as const
    ),
    [{}, undefined],
    [{ "anthropic-ratelimit-requests-reset": "2026-10-21T07:28:45Z", date }, 45_000],
    [{ "anthropic-ratelimit-unified-reset": String(Date.parse(at) / 1000) }, undefined, Date.parse(at)],
    [{ "x-ratelimit-reset": String(Date.parse(at)), date }, 30_000],
    [{ "x-ratelimit-reset-tokens": "6m0.5s", "x-ratelimit-reset-requests": "20ms" }, 360_500],
    [
      {
        "x-ratelimit-reset-tokens": "6m0s",
        "x-ratelimit-remaining-tokens": "9",
        "x-ratelimit-reset-requests": "7.66s"
      },
      7660
    ],
    [{ "ratelimit-reset": "12", "ratelimit-remaining": "0" }, 12_000],
    [{ "ratelimit-reset": "12", "ratelimit-remaining": "3" }, undefined],
    [{ "ratelimit-reset": "-12" }, undefined],
    [{ "ratelimit-reset": "12", "retry-after": "3" }, 3000]
  ] as ReadonlyArray<readonly [Record<string, string>, number | undefined, number?]>) {
    it(`MD-35: the wait that a provider asks for is read from ${JSON.stringify(headers).slice(0, 120)}`, () => {
      const { retryAfterMs, retryAtMs } = classifyError(response(429, {}, headers))
      assert.deepStrictEqual([retryAfterMs, retryAtMs], [wait, until])
    })
  }

  it("MD-35: rate limits that a failure of another kind reports are no wait", () => {
    assert.isUndefined(classifyError(response(500, {}, { "ratelimit-reset": "12" })).retryAfterMs)
  })

  it("MD-34: nothing secret and nothing unbounded leaves the classification", () => {
    const failure = classifyError(
      response(
        401,
        { error: { message: `Incorrect API key provided: sk-abcdef123456. ${"x".repeat(9000)}` } },
        {
          "x-request-id": "req_1",
          "set-cookie": "session=topsecret",
          authorization: "Bearer topsecret"
        }
      )
    )
    assert.notMatch(JSON.stringify(failure), /topsecret|abcdef123456|user:pass/)
    assert.deepStrictEqual(failure.responseHeaders, { "x-request-id": "req_1" })
    assert.isBelow(failure.message.length, 1100)
    assert.isBelow(failure.responseBody?.length ?? 0, 4200)
    assert.match(failure.message, /^api\.example\.test answered HTTP 401: Incorrect API key provided: <redacted>/)
  })

  it("MD-34: a known secret is removed wherever it stands", () => {
    assert.strictEqual(redactSecrets("a hunter22 b", ["hunter22"]), "a <redacted> b")
  })
})
