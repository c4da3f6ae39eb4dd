/**
 * Lists the available models: those of the catalogue, and those of the server at `DAYBOOK_BASE_URL`. The request to that
 * server is bounded in time, bytes and count. Spec: CL-130, CL-131 in specs/cli.md.
 */
import { Effect, Redacted, Schema } from "effect"
import { safeFetch } from "@daybook/core/http/SameOrigin"
import { Catalog, Models, OfflineModel } from "@daybook/models"
import type { ListedModel } from "../render/ModelText.ts"

/** A server that did not list its models. */
export interface Silent {
  readonly provider: string
  readonly why: string
}

const patience = "5 seconds"
const maxBytes = 1024 * 1024
const maxModels = 500

const Listing = Schema.parseJson(Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.NonEmptyString })) }))

/** The text of a body; undefined if it is too long. */
const bounded = async (response: Response): Promise<string | undefined> => {
  const parts: Array<Uint8Array> = []
  let size = 0
  for await (const part of response.body ?? []) {
    size += part.length
    if (size > maxBytes) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts).toString("utf8")
}

/** The models that a chat completions server lists at `/models`; the error is a sentence. */
const offered = (base: string, key: string | undefined): Effect.Effect<ReadonlyArray<string>, string> =>
  Effect.gen(function* () {
    const host = new URL(base).host
    const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
    const response = yield* Effect.tryPromise({
      try: (signal) => safeFetch(`${base.replace(/\/+$/, "")}/models`, { headers, signal }),
      catch: (cause) =>
        `${host} cannot be reached: ${cause instanceof Error && cause.cause instanceof Error ? cause.cause.message : String(cause)}`
    })
    if (!response.ok) {
      yield* Effect.promise(async () => response.body?.cancel())
      const advice =
        response.status === 401 || response.status === 403 ? "; set DAYBOOK_API_KEY to a key that it accepts" : ""
      return yield* Effect.fail(`${host} answered HTTP ${response.status}${advice}`)
    }
    const text = yield* Effect.tryPromise({
      try: () => bounded(response),
      catch: () => `the response of ${host} was cut off`
    })
    if (text === undefined) return yield* Effect.fail(`the model list of ${host} exceeds ${maxBytes / 1024 / 1024} MiB`)
    const { data } = yield* Effect.mapError(
      Schema.decodeUnknown(Listing)(text),
      () => `${host} does not list its models as chat completions servers do`
    )
    return data.slice(0, maxModels).map(({ id }) => id)
  }).pipe(
    Effect.timeoutFail({ duration: patience, onTimeout: () => `${new URL(base).host} gave no answer in ${patience}` })
  )

const variables = { anthropic: "ANTHROPIC_API_KEY", openai: "OPENAI_API_KEY" } as const

/** Every known model, the server's first, and the servers that did not answer. */
export const list = Effect.gen(function* () {
  const { default: standard, providers } = yield* Models.fromEnvironment
  const chosen = standard === undefined ? undefined : Catalog.formatModel(standard)
  const marked = (model: Omit<ListedModel, "default">): ListedModel => ({ ...model, default: model.model === chosen })
  const silent: Array<Silent> = []
  const served = yield* Effect.forEach(Object.entries(providers), ([provider, options]) =>
    options.api !== "openai-compatible" || options.baseUrl === undefined
      ? Effect.succeed([])
      : offered(options.baseUrl, options.apiKey === undefined ? undefined : Redacted.value(options.apiKey)).pipe(
          Effect.map((ids) => ids.map((id) => marked({ model: `${provider}/${id}`, name: id, source: "server" }))),
          Effect.catchAll((why) => Effect.sync((): ReadonlyArray<ListedModel> => (silent.push({ provider, why }), [])))
        )
  )
  const known = (["anthropic", "openai"] as const).flatMap((provider) =>
    Object.entries(Catalog.entries[provider]).map(([id, { price, ...entry }]) =>
      marked({
        model: `${provider}/${id}`,
        ...entry,
        ...(price === undefined ? {} : { price }),
        source: "catalogue",
        ...(providers[provider] === undefined ? { needs: variables[provider] } : {})
      })
    )
  )
  const offline = marked({
    model: Catalog.formatModel(OfflineModel.ref),
    name: "no language model",
    source: "built in"
  })
  return { models: [...served.flat(), ...known, offline], silent }
})

/** Names the first few models of a server when no model was chosen; empty if none are listed. */
export const suggestion = Effect.map(list, ({ models, silent }) => {
  const found = models.filter(({ source }) => source === "server").map(({ model }) => model)
  const why = silent[0]?.why
  if (found.length === 0) return why === undefined ? "" : `; ${why}`
  const more = found.length > 8 ? `, and ${found.length - 8} more (daybook models)` : ""
  return `; it offers ${found.slice(0, 8).join(", ")}${more}`
})
