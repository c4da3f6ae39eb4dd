/** What `daybook doctor` looks at: the database, and whether each configured provider answers. Spec: CL-19. */
import { Doctor, Rebuild, Store, type LogUnavailable, type SessionID } from "@daybook/core"
import { Models } from "@daybook/models"
import { Effect, Redacted, Stream, type ConfigError } from "effect"

/** One line of the report. */
export interface Check {
  readonly about: string
  readonly verdict: "ok" | "warning" | "error"
  readonly says: string
  /** What to do about it. */
  readonly fix?: string
}

type Failures = LogUnavailable | Effect.Effect.Error<ReturnType<typeof opened>>

const opened = (filename: string) => Effect.provide(Stream.runDrain(Doctor.verify), Store.layer({ filename }))

/** Everything that is wrong with the database; a sound one gives nothing. */
export const database = (filename: string): Stream.Stream<Check, Failures> =>
  Doctor.verify.pipe(
    Stream.map((finding): Check => ({
      about: finding.sessionID ?? "database",
      verdict: finding.severity,
      says: finding.what,
      fix: finding.fix
    })),
    Stream.provideLayer(Store.layer({ filename }))
  )

/** Derives what is shown of one session, or of all, again from its events. */
export const rebuild = (filename: string, which: SessionID | "all") =>
  Effect.provide(Rebuild.rebuild(which), Store.layer({ filename }))

const patience = "5 seconds"

/** Asks for the list of models, which costs nothing and needs the key. */
const reach = (name: string, base: string, headers: Record<string, string>): Effect.Effect<Check> =>
  Effect.tryPromise({
    try: (signal) => fetch(`${base.replace(/\/$/, "")}/models`, { headers, signal, redirect: "error" }),
    catch: (cause) => (cause instanceof Error && cause.cause instanceof Error ? cause.cause.message : String(cause))
  }).pipe(
    Effect.tap((response) => Effect.promise(async () => response.body?.cancel())),
    Effect.timeoutFail({ duration: patience, onTimeout: () => `no answer in ${patience}` }),
    Effect.match({
      onFailure: (why): Check => ({
        about: name,
        verdict: "error",
        says: `${new URL(base).host} cannot be reached: ${why}`,
        fix: "check the address, the network and its proxy"
      }),
      onSuccess: ({ status }): Check =>
        status === 401 || status === 403
          ? { about: name, verdict: "error", says: `the key was refused (HTTP ${status})`, fix: "check the key" }
          : status >= 500
            ? { about: name, verdict: "warning", says: `answers HTTP ${status}`, fix: "try again later" }
            : { about: name, verdict: "ok", says: `${new URL(base).host} answers` }
    })
  )

/** Each provider of the environment, and which model answers when nobody names one. */
export const models: Effect.Effect<ReadonlyArray<Check>, ConfigError.ConfigError> = Effect.gen(function* () {
  const { default: standard, defaultHint, providers } = yield* Models.fromEnvironment
  const first: Check =
    standard === undefined
      ? {
          about: "model",
          verdict: "warning",
          says: "no model is selected",
          fix: defaultHint ?? "name one with --model"
        }
      : { about: "model", verdict: "ok", says: `${standard.providerID}/${standard.id}` }
  const reached = yield* Effect.forEach(
    Object.entries(providers),
    ([name, provider]) => {
      switch (provider.api) {
        case "anthropic":
          return reach(name, `${provider.baseUrl ?? "https://api.anthropic.com"}/v1`, {
            "x-api-key": Redacted.value(provider.apiKey),
            "anthropic-version": "2023-06-01"
          })
        case "openai":
          return reach(name, provider.baseUrl ?? "https://api.openai.com/v1", bearer(provider.apiKey))
        case "openai-compatible":
          return reach(name, provider.baseUrl, provider.apiKey === undefined ? {} : bearer(provider.apiKey))
        default:
          return Effect.succeed<Check>({ about: name, verdict: "ok", says: "made by the host" })
      }
    },
    { concurrency: "unbounded" }
  )
  return [first, ...reached]
})

const bearer = (key: Redacted.Redacted) => ({ authorization: `Bearer ${Redacted.value(key)}` })
