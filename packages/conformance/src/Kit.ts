/** What laws share: sessions with prompts, replays, refusals and comparisons. */
import { Schema } from "effect"
import { allFrames, answer, type Frame, request, type Target } from "./Target.ts"

/** One clause of specs/http.md. Its test fails by throwing. */
export interface Law {
  readonly clause: string
  readonly says: string
  readonly test: (target: Target) => Promise<void>
  /** It has to wait for the server's own times, so that it runs beside the others. */
  readonly slow?: true
  /** Why the target does not permit the test, if it does not. */
  readonly untestable?: (target: Target) => string | undefined
}

export const Created = Schema.Struct({ id: Schema.String })
export const Cursored = Schema.Struct({ cursor: Schema.String })
export const End = Schema.Struct({ reason: Schema.String, cursor: Schema.optional(Schema.String) })

/** What every stored event has. */
export const Event = Schema.Struct({
  position: Schema.Int,
  seq: Schema.Int,
  id: Schema.String.pipe(Schema.startsWith("evt_")),
  sessionID: Schema.String,
  type: Schema.String,
  version: Schema.Int,
  created: Schema.Number,
  data: Schema.Unknown
})

const Failure = Schema.parseJson(
  Schema.Struct(
    { _tag: Schema.String, message: Schema.NonEmptyString },
    Schema.Record({ key: Schema.String, value: Schema.Unknown })
  )
)

export const expect = (holds: boolean, otherwise: string): void => {
  if (!holds) throw new Error(otherwise)
}

/** JSON with the fields of objects in one order: theirs says nothing. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each
  ) ?? "nothing"

const shown = (value: unknown): string => canonical(value).slice(0, 500)

export const same = (found: unknown, expected: unknown, what: string): void =>
  expect(canonical(found) === canonical(expected), `${what}: found ${shown(found)}, expected ${shown(expected)}`)

/** A request with a JSON body. */
export const posted = (body: unknown, headers: Record<string, string> = {}, method = "POST"): RequestInit => ({
  method,
  body: JSON.stringify(body),
  headers
})

export const aPrompt = (text: string, more: object = {}) => ({ prompt: { text }, resume: false, ...more })

/** Admits a prompt that nothing runs. */
export const say = (target: Target, sessionID: string, text: string, more: object = {}, headers = {}) =>
  answer(target, Created, `/sessions/${sessionID}/prompts`, posted(aPrompt(text, more), headers))

/** A new session with so many prompts that nothing runs. */
export const session = async (target: Target, prompts: number): Promise<string> => {
  const { id } = await answer(target, Created, "/sessions", posted({ location: { directory: "/" } }))
  for (let n = 1; n <= prompts; n++) await say(target, id, `prompt ${n} \u{1F4D3} ${"é".repeat(n)}`)
  return id
}

export const events = (of: ReadonlyArray<Frame>): ReadonlyArray<Frame> => of.filter(({ type }) => type === "event")

const decodeEvent = Schema.decodeUnknownSync(Event)
export const eventOf = ({ data }: Frame) => decodeEvent(data)
export const seqOf = (frame: Frame): number => eventOf(frame).seq

/** The texts of the prompts that a session's events admit. */
export const admitted = (of: ReadonlyArray<Frame>): ReadonlyArray<unknown> =>
  events(of).flatMap((frame) => {
    const { data, type } = eventOf(frame)
    return type === "session.next.prompt.admitted" ? [data] : []
  })

/** A stream of a session as it is stored. */
export const replay = (target: Target, id: string, query = "", headers: Record<string, string> = {}) =>
  allFrames(target, `/sessions/${id}/events?follow=0${query}`, headers)

export const after = (cursor: string | number | undefined): string => `&after=${encodeURIComponent(cursor ?? "")}`

/** The error of a request that has to be refused with this status. */
export const refusal = async (target: Target, path: string, status: number, init?: RequestInit) => {
  const response = await request(target, path, init)
  same(response.status, status, `status of ${init?.method ?? "GET"} ${path}`)
  const text = await response.text()
  same(response.headers.get("content-type")?.split(";")[0], "application/json", `content type of ${path}`)
  const fields = Schema.decodeUnknownSync(Failure)(text)
  return { code: fields._tag, message: fields.message, fields, text, response }
}

/** Expects a refusal with this status and code. */
export const refuses = async (target: Target, path: string, status: number, code: string, init?: RequestInit) => {
  const refused = await refusal(target, path, status, init)
  same(refused.code, code, `code of ${path}`)
  return refused
}

/** Whether numbers are 0, 1, 2 and so on. */
export const counts = (numbers: ReadonlyArray<number>, from = 0): void =>
  same(
    numbers,
    numbers.map((_, index) => from + index),
    "sequence numbers"
  )
