/**
 * Model servers on loopback: each answers scripted actions in its own style over real HTTP, and checks each request by its
 * documented rules. A broken rule is recorded, and answered as the server would: with an error. Kinds: `ChatServers.ts`,
 * `NativeServers.ts`.
 */
import { Effect, Predicate, Redacted, type Scope } from "effect"
import type { Models } from "@daybook/models"
import type { Api } from "../../../packages/models/src/Profiles.ts"
import { type Received, type Reply, refusal, serveEach } from "../../models/support/Server.ts"

export type Json = Readonly<Record<string, unknown>>

export const record = (value: unknown): Json => (Predicate.isRecord(value) ? value : {})
export const list = (value: unknown): ReadonlyArray<Json> => (Array.isArray(value) ? value.map(record) : [])

/** What a model does in one answer, in order. */
export type Action =
  { readonly reason: string } | { readonly text: string } | { readonly tool: string; readonly input: Json }

/** The errors that every server has. */
export type Refusal = "overflow" | "rateLimit" | "auth"

/** Records a broken rule. */
export type Note = (fault: string) => void

/** An answer as it goes over the wire: what is said, and how it ends. */
export interface Wire {
  readonly said: ReadonlyArray<string>
  readonly end: ReadonlyArray<string>
}

export interface ModelServer {
  /** The name of its profile. */
  readonly profile: string
  readonly api: Api
  readonly model: string
  /** The path of its address, and that of requests below it. */
  readonly base: string
  readonly path: string
  /** The header of the key. */
  readonly key: string
  readonly pictures: boolean
  /** Whether its answers show thinking. */
  readonly thinks: boolean
  /** Writes an answer; `nth` counts answers of all requests. */
  readonly write: (actions: ReadonlyArray<Action>, nth: number) => Wire
  /** Checks a request; `said` are the actions of earlier answers. */
  readonly check: (body: Json, said: ReadonlyArray<ReadonlyArray<Action>>, note: Note) => void
  readonly refusals: Readonly<Record<Refusal, Reply>>
}

/** A server that runs. */
export interface Running {
  readonly server: ModelServer
  readonly ref: { readonly providerID: string; readonly id: string }
  readonly provider: Models.Provider
  /** Adds the answer to the next unanswered request. */
  readonly answer: (...actions: ReadonlyArray<Action>) => void
  /** The same, but the answer never ends. */
  readonly hold: (...actions: ReadonlyArray<Action>) => void
  readonly refuse: (how: Refusal) => void
  /** Forgets the answers that are left. */
  readonly clear: () => void
  readonly received: ReadonlyArray<Received>
  /** The rules that requests broke since the last call. */
  readonly faults: () => ReadonlyArray<string>
}

const secret = "sk-test-0123456789abcdef"

export const window = { contextTokens: 100_000, outputTokens: 4_000 }

export const start = (server: ModelServer): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.gen(function* () {
    const faults: Array<string> = []
    const said: Array<ReadonlyArray<Action>> = []
    const replies: Array<() => Reply> = []
    const answering = (actions: ReadonlyArray<Action>, held: boolean) => (): Reply => {
      const { end, said: chunks } = server.write(actions, said.push(actions))
      return held ? { chunks, ending: "silence" } : { chunks: [...chunks, ...end] }
    }
    const http = yield* serveEach((request) => {
      const broken: Array<string> = []
      check(server, request, said, (fault) => broken.push(fault))
      faults.push(...broken)
      const reply = replies.shift()
      if (broken.length > 0)
        return refusal(400, { error: { message: broken.join("; "), type: "invalid_request_error" } })
      return reply?.() ?? refusal(400, { error: { message: "the script has no answer left" } })
    })
    return {
      server,
      ref: { providerID: server.profile, id: server.model },
      provider: {
        api: server.api,
        baseUrl: `${http.url}${server.base}`,
        apiKey: Redacted.make(secret),
        models: { [server.model]: { ...window, media: server.pictures ? ["image"] : [] } }
      },
      answer: (...actions) => void replies.push(answering(actions, false)),
      hold: (...actions) => void replies.push(answering(actions, true)),
      clear: () => void replies.splice(0),
      refuse: (how) => void replies.push(() => server.refusals[how]),
      received: http.received,
      faults: () => faults.splice(0)
    }
  })

const check = (
  server: ModelServer,
  { body, headers, path }: Received,
  said: ReadonlyArray<ReadonlyArray<Action>>,
  note: Note
): void => {
  const wanted = `${server.base}${server.path}`
  if (path !== wanted) note(`the path is ${path}, not ${wanted}`)
  const key = server.key === "authorization" ? `Bearer ${secret}` : secret
  if (headers[server.key] !== key) note(`the key is not in ${server.key}`)
  server.check(body, said, note)
}

/** A text in two pieces, as servers send it. */
export const pieces = (text: string): ReadonlyArray<string> => {
  const half = Math.ceil(text.length / 2)
  return [text.slice(0, half), text.slice(half)].filter((piece) => piece !== "")
}

/** The answer that a message of the history repeats, found by its first call or its text. */
export const repeated = (
  said: ReadonlyArray<ReadonlyArray<Action>>,
  input: string | undefined,
  text: string
): ReadonlyArray<Action> | undefined =>
  said.find((actions) =>
    input === undefined
      ? !actions.some((one) => "tool" in one) && actions.some((one) => "text" in one && one.text === text)
      : actions.some((one) => "tool" in one && JSON.stringify(one.input) === input)
  )

export const reasonOf = (actions: ReadonlyArray<Action>): string =>
  actions.flatMap((one) => ("reason" in one ? [one.reason] : [])).join("")

export { type Reply, refusal } from "../../models/support/Server.ts"
