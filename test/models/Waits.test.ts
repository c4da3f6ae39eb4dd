/** What providers say about another attempt: in headers, in bodies, in words, and by not answering. */
import { AiError } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"
import { freePort } from "../mcp/support/Servers.ts"
import { serve } from "./support/Server.ts"

const request = (url: string) => ({
  method: "POST" as const,
  url,
  urlParams: [],
  hash: Option.none<string>(),
  headers: {}
})

const failure = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  classifyError(
    new AiError.HttpResponseError({
      module: "Test",
      method: "streamText",
      reason: "StatusCode",
      request: request("https://api.example.test/v1/chat"),
      response: { status, headers },
      body: JSON.stringify(body)
    })
  )

const says = (message: string, more: object = {}) => ({ error: { message, ...more } })

const retryInfo = (retryDelay: string) => ({
  error: {
    code: 429,
    message: "You exceeded your current quota, please check your plan and billing details.",
    status: "RESOURCE_EXHAUSTED",
    details: [
      { "@type": "type.googleapis.com/google.rpc.Help", links: [{ url: "https://ai.google.dev" }] },
      { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay }
    ]
  }
})

describe("the wait that a provider asks for", () => {
  for (const [text, wait] of [
    ["30s", 30_000],
    ["1m30s", 90_000],
    ["500ms", 500],
    ["2 minutes", 120_000]
  ] as const) {
    it(`MD-35: a retry-after of ${text} is read as a duration`, () => {
      assert.strictEqual(failure(503, {}, { "retry-after": text }).retryAfterMs, wait)
    })
  }

  for (const [body, wait] of [
    [retryInfo("34s"), 34_000],
    [[retryInfo("34.074824224s")], 34_075],
    [says("slow", { retry_after: 7 }), 7_000],
    [says("slow", { retry_after: "2.5" }), 2_500],
    [says("slow", { retry_after_ms: 250 }), 250],
    [{ detail: "slow", retry_after: 12 }, 12_000],
    [says("slow", { metadata: { retry_after_seconds: 3 } }), 3_000],
    [{ error: "Model m is currently loading", estimated_time: 20.5 }, 20_500],
    [says("Rate limit reached on tokens per min. Please try again in 6s. Visit https://x."), 6_000],
    [says("Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s. Need more?"), 4_770],
    [says("Limit 100000, Used 97050, Requested 3619. Please try again in 9m38.016s. Need more?"), 578_016],
    [says("Please try again in 1m12.5s."), 72_500],
    [says("Please try again in 20ms."), 20],
    [says("* Quota exceeded for metric, limit: 4000000\nPlease retry in 47.434392449s."), 47_435],
    [says("Limit: 3 / min. Please try again in 20 seconds."), 20_000],
    [says("Requests have exceeded the call rate limit. Please retry after 41 seconds."), 41_000],
    [says("Please retry after 1 minute and 5 seconds."), 65_000],
    [says("Too many requests, please wait 30 seconds"), 30_000],
    [says("Your limit resets in 2 minutes"), 120_000],
    [says("Try again in 1 hour"), 3_600_000],
    [{ error: { type: "usage_limit_reached", resets_at: 1, resets_in_seconds: 760 } }, 760_000],
    [says("cooling down", { reset_seconds: 15 }), 15_000],
    [{ error: { details: [{ retryDelay: { seconds: "12", nanos: 500_000_000 } }] } }, 12_500],
    [says("slow", { metadata: { headers: { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "42" } } }), 42_000],
    [says("Rate limited. Please retry after 60"), 60_000],
    [says("Too many requests. Retry-After: 30"), 30_000],
    [says("The next request will be accepted in 12 seconds"), 12_000],
    [says('geminiException - b\'{"details": [{"retryDelay": "34s"}]}\''), 34_000],
    [says("请求过于频繁，请30秒后重试"), 30_000],
    [says("请等待 2 分钟"), 120_000],
    [says("Usage limit reached for 5 hour. Your limit will reset at 2030-08-17 02:56:15"), undefined],
    [says("You sent 12 requests in 60 seconds"), undefined],
    [says("Please try again later. The limit is 10 requests in 60 seconds"), undefined],
    [says("try again in 5 attempts"), undefined],
    [says("slow", { retry_after: -5 }), undefined],
    [says("slow", { retry_after: "soon" }), undefined],
    [says("slow", { retry_after: null }), undefined]
  ] as const) {
    it(`MD-686: ${wait ?? "no"} milliseconds are read from ${JSON.stringify(body).slice(0, 100)}`, () => {
      assert.strictEqual(failure(429, body).retryAfterMs, wait)
    })
  }

  for (const [body, end] of [
    [{ error: { type: "usage_limit_reached", resets_at: 1_900_000_000 } }, 1_900_000_000_000],
    [says("slow", { metadata: { headers: { "X-RateLimit-Reset": "1900000000000" } } }), 1_900_000_000_000],
    [says("Limit resets at 2030-08-17T02:56:15Z"), Date.parse("2030-08-17T02:56:15Z")],
    [says("Rate limit exceeded, reset at 1900000000"), 1_900_000_000_000]
  ] as const) {
    it(`MD-783: the end of a wait is read from ${JSON.stringify(body).slice(0, 100)}`, () => {
      assert.strictEqual(failure(429, body).retryAtMs, end)
    })
  }

  for (const [header, wait] of [
    ['"minute";r=178;t=44, "hour";r=0;t=1724', 1_724_000],
    ["limit=100, remaining=0, reset=50", 50_000],
    ['"minute";r=1;t=44', undefined]
  ] as const) {
    it(`MD-783: the header ratelimit ${header} asks to wait ${wait ?? "no"} milliseconds`, () => {
      assert.strictEqual(failure(429, {}, { ratelimit: header }).retryAfterMs, wait)
    })
  }

  it("MD-686: a value inside a stream is read as well", () => {
    assert.strictEqual(classifyError(retryInfo("34s")).retryAfterMs, 34_000)
    assert.strictEqual(classifyError({ type: "rate_limit_error", message: "retry in 3s" }).retryAfterMs, 3_000)
  })

  it("MD-686: a header comes before the body, the body before the words and the reset of a limit", () => {
    const body = says("Please try again in 9s", { retry_after: 5 })
    const reset = { "x-ratelimit-reset-requests": "7s", "x-ratelimit-remaining-requests": "0" }
    assert.strictEqual(failure(429, body, { ...reset, "retry-after": "2" }).retryAfterMs, 2_000)
    assert.strictEqual(failure(429, body, reset).retryAfterMs, 5_000)
    assert.strictEqual(failure(429, says("Please try again in 9s"), reset).retryAfterMs, 9_000)
    assert.strictEqual(failure(429, says("slow"), reset).retryAfterMs, 7_000)
  })

  it("MD-687: a request that is wrong names no wait, whatever its words", () => {
    assert.isUndefined(failure(400, says("fix it and try again in 5s", { retry_after: 5 })).retryAfterMs)
    assert.strictEqual(failure(503, says("try again in 5s")).retryAfterMs, 5_000)
  })
})

describe("whether another attempt may succeed", () => {
  it("MD-683: x-should-retry decides for an answer, not for an overflow or an account without credit", () => {
    const retryable = (status: number, asked: string, message = "no") =>
      failure(status, says(message), { "X-Should-Retry": asked }).retryable
    assert.isFalse(retryable(529, "false"))
    assert.isTrue(retryable(409, "true"))
    assert.isTrue(retryable(529, "perhaps"))
    assert.isFalse(retryable(400, "true", "prompt is too long"))
    assert.isFalse(retryable(429, "true", "insufficient_quota"))
  })

  for (const [who, status, body] of [
    ["OpenAI", 429, says("You exceeded your current quota", { code: "insufficient_quota" })],
    ["Anthropic", 400, says("Your credit balance is too low to access the Anthropic API.")],
    ["z.ai", 429, says("Insufficient balance or no resource package. Please recharge.", { code: "1113" })],
    ["z.ai in Chinese", 429, says("余额不足", { code: 1113 })],
    ["DeepSeek", 402, says("Insufficient Balance")],
    ["Moonshot", 429, says("Your account is suspended", { type: "exceeded_current_quota_error" })],
    ["DashScope", 500, says("Access denied", { code: "Arrearage" })],
    ["OpenAI", 429, says("You have no credits remaining", { code: "credit_balance_exhausted" })],
    ["AI Studio", 429, says("Your prepayment credits are depleted.")],
    ["Hugging Face", 429, says("You have exceeded your monthly included credits for Inference Providers.")],
    ["Anthropic", 429, says("You're out of extra usage. Add more at claude.ai/settings/usage")],
    ["New API", 429, says("user quota is not enough", { code: "insufficient_user_quota" })],
    ["One API", 429, says("预扣费额度失败, 用户剩余额度: 0")],
    ["LiteLLM", 429, says("Budget has been exceeded! Current cost: 10.1, Max budget: 10.0")],
    ["DashScope", 429, says("The free tier of the model has been exhausted.")]
  ] as const) {
    it(`MD-684: ${who}'s account without credit is not tried again`, () => {
      assert.isFalse(failure(status, body).retryable)
    })
  }

  for (const [what, status, body] of [
    ["a call that the model wrote badly (Groq)", 400, says("Failed to call a function.", { code: "tool_use_failed" })],
    ["an answer that could not be read (Groq)", 400, says("Parsing failed.", { code: "output_parse_failed" })],
    ["a connection behind a gateway (Ollama)", 400, says("unexpected EOF", { type: "invalid_request_error" })],
    ["a model that crashed (LM Studio)", 400, { error: "The model has crashed without additional information." }],
    ["a model that was unloaded (LM Studio)", 400, { error: "Model unloaded." }],
    ["a lost channel (LM Studio)", 400, { error: "Channel Error" }],
    ["a silent server behind a gateway", 400, says("Upstream idle timeout exceeded")]
  ] as const) {
    it(`MD-782: ${what} is tried again, and no content is withheld`, () => {
      const { content, retryable } = failure(status, body)
      assert.deepStrictEqual({ content, retryable }, { content: undefined, retryable: true })
    })
  }

  for (const value of [
    { error: "Too many requests", code: 429 },
    { code: "slow_down", message: "Please slow down" },
    { code: "upstream_error", message: "Upstream request failed" },
    { type: "throttling_error", message: "Too many tokens, please wait" },
    { message: "llama runner process has terminated" }
  ]) {
    it(`MD-32: an error within an answer is tried again: ${JSON.stringify(value)}`, () => {
      assert.isTrue(classifyError(value).retryable)
    })
  }

  it("MD-684: Gemini's quota of a minute is waited for, though it mentions billing", () => {
    assert.isTrue(failure(429, retryInfo("34s")).retryable)
  })

  it.scoped("MD-685: a server on this machine that does not run is asked about, and counts as unanswered", () =>
    Effect.gen(function* () {
      const url = `http://127.0.0.1:${yield* freePort}/v1/chat/completions`
      const cause = yield* Effect.flip(Effect.tryPromise({ try: () => fetch(url), catch: (error) => error }))
      const refused = (to: string) =>
        classifyError(
          new AiError.HttpRequestError({ module: "T", method: "m", reason: "Transport", request: request(to), cause })
        )
      const { message, retryable, unanswered } = refused(url)
      assert.deepStrictEqual({ retryable, unanswered }, { retryable: true, unanswered: true })
      assert.match(message, /^127\.0\.0\.1:\d+: .+; is it running\?$/)
      assert.match(refused("http://localhost:11434/v1").message, /is it running\?$/)
      assert.notInclude(refused("https://api.example.test/v1").message, "running")
    })
  )

  it("MD-685: a host whose name is unknown is told in words, and asked about", () => {
    const looked = Object.assign(new Error("getaddrinfo ENOTFOUND api.example.test"), { code: "ENOTFOUND" })
    const cause = new TypeError("fetch failed", { cause: looked })
    const { message } = classifyError(
      new AiError.HttpRequestError({
        module: "T",
        method: "m",
        reason: "Transport",
        request: request("https://api.example.test/v1"),
        cause
      })
    )
    assert.strictEqual(
      message,
      "api.example.test: no host of this name is known (ENOTFOUND); check the address and the network"
    )
  })

  it.scoped("MD-789: a server without TLS at an https address is named, and not tried again", () =>
    Effect.gen(function* () {
      const { url } = yield* serve()
      const address = `${url.replace("http:", "https:")}/v1`
      const cause = yield* Effect.flip(
        Effect.tryPromise({ try: () => fetch(address), catch: (error) => (error as Error).cause })
      )
      const failed = new AiError.HttpRequestError({
        module: "T",
        method: "m",
        reason: "Transport",
        request: request(address),
        cause
      })
      const { message, retryable } = classifyError(failed)
      assert.isFalse(retryable)
      assert.match(message, /: the server does not speak TLS; does its address begin with http: \?$/)
    })
  )

  it("MD-789: a certificate of an unknown authority is not tried again, and the error says what to set", () => {
    const cause = { code: "SELF_SIGNED_CERT_IN_CHAIN", message: "self-signed certificate in certificate chain" }
    const address = request("https://h.test/v1")
    const { message, retryable } = classifyError(
      new AiError.HttpRequestError({ module: "T", method: "m", reason: "Transport", request: address, cause })
    )
    assert.isFalse(retryable)
    assert.match(message, /certificate chain; set NODE_EXTRA_CA_CERTS/)
  })

  it("MD-685: an overload is an answer", () => {
    assert.isUndefined(failure(529, says("Overloaded")).unanswered)
    assert.isUndefined(classifyError({ type: "overloaded_error", message: "Overloaded" }).unanswered)
  })
})
