/** Resolves a typed reference to a session or to a message of it. Spec: CL-10, CL-11, CL-210 in specs/cli.md. */
import { Effect, Either, Option, Schema } from "effect"
import { Address } from "@daybook/log/domain/Address"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { oneLine } from "../render/Plain.ts"
import { sessionTable } from "../render/SessionLine.ts"
import { noSessions, NotFound, UsageError } from "../support/Errors.ts"
import * as Folder from "./Folder.ts"
import * as Breadcrumb from "../terminal/Breadcrumb.ts"
import * as Question from "../terminal/Question.ts"

/** The message of the reference; several are an error that lists them. */
export const resolveMessage = Effect.fn("MessageReference.resolve")(function* (sessionID: SessionID, text: string) {
  if (text.trim() === "") return yield* new UsageError({ message: "a message is an id or a label; got an empty text" })
  const [found, ...others] = yield* (yield* SessionStore).find(sessionID, text)
  const given = oneLine(text)
  if (found === undefined) {
    return yield* new NotFound({
      message: `${sessionID} has no message or label "${given}"; daybook tree ${sessionID} lists its messages`
    })
  }
  if (others.length > 0) {
    const ids = [found, ...others].join(", ")
    return yield* new UsageError({ message: `"${given}" is more than one message: ${ids}; use more of the id` })
  }
  return found
})

/** A typed reference: text that starts with `ses_` is an id, any other is a title or a socket name. */
export type Reference =
  { readonly type: "id"; readonly id: SessionID } | { readonly type: "title"; readonly title: string }

export const parse = (text: string): Either.Either<Reference, UsageError> => {
  if (!text.startsWith("ses_")) {
    return text.trim() === ""
      ? Either.left(new UsageError({ message: "a session is an id (ses_...) or a title; got an empty text" }))
      : Either.right({ type: "title", title: text })
  }
  return Either.mapBoth(Schema.decodeUnknownEither(SessionID)(text), {
    onLeft: () =>
      new UsageError({
        message: `${oneLine(text)} is not a session id: expected ses_ followed by 1-96 letters, digits, dots, underscores or hyphens`
      }),
    onRight: (id) => ({ type: "id", id })
  })
}

/** Sessions that are offered for a choice, at most. */
const offered = 9

/**
 * The one of several sessions that the person at the terminal chooses by its number; elsewhere, and without a choice, the
 * refusal. Spec: CL-775.
 */
export const choose = Effect.fn("SessionReference.choose")(function* (
  why: string,
  ids: ReadonlyArray<SessionID>,
  refusal: UsageError
) {
  if (!Question.canAsk()) return yield* refusal
  const sessions = yield* SessionStore
  const found = yield* Effect.forEach(ids.slice(0, offered), (id) => sessions.get(id))
  const numbered = sessionTable(found).replaceAll(/^/gm, "  ").split("\n")
  const rows = numbered.slice(0, found.length).map((row, at) => `${at + 1}${row}\n`)
  const typed = yield* Question.ask(`${why}:\n${rows.join("")}which one? [1-${found.length}] `)
  return found[Number(typed?.trim()) - 1] ?? (yield* refusal)
})

/** The session of this title that the person chooses. The last used comes first. */
export const ambiguous = (title: string, ids: ReadonlyArray<SessionID>) =>
  choose(
    `more than one session is called "${oneLine(title)}"`,
    ids,
    new UsageError({
      message:
        `more than one session is called "${oneLine(title)}": ${ids.join(", ")}; use an id, ` +
        "or rename the others with daybook rename ID TITLE"
    })
  )

/** The only session with this title in the directory, else anywhere; an error that lists them if there are several. */
const byTitle = Effect.fn("SessionReference.byTitle")(function* (title: string, directory: string) {
  const sessions = yield* SessionStore
  const here = yield* sessions.titled(title, { directory })
  const found = here.length > 0 ? here : yield* sessions.titled(title)
  if (found.length > 1)
    return yield* ambiguous(
      title,
      found.map(({ id }) => id)
    )
  return found[0]
})

const decodeAddress = Schema.decodeUnknownOption(Address)

/** The user's own session at an agent's socket: `AGENT/SESSION`. */
const byAddress = Effect.fn("SessionReference.byAddress")(function* (text: string) {
  const [name, session, ...rest] = text.split("/")
  const uid = process.getuid?.() ?? 0
  const address = decodeAddress({ scope: "private", uid, kind: "agent", name, session })
  return rest.length > 0 || Option.isNone(address) ? undefined : yield* (yield* SessionStore).addressed(address.value)
})

/** Sessions that a beginning is compared with, at most. */
const compared = 100_000

/** The session whose id begins like this, if it is only one. An exact id comes first. */
const byID = Effect.fn("SessionReference.byID")(function* (id: SessionID) {
  const sessions = yield* SessionStore
  return yield* Effect.catchTag(sessions.get(id), "SessionNotFound", (error) =>
    Effect.gen(function* () {
      const found: Array<SessionID> = []
      let [cursor, seen]: [string | undefined, number] = [undefined, 0]
      do {
        const page: Effect.Effect.Success<ReturnType<typeof sessions.list>> = yield* sessions.list({
          limit: 500,
          cursor
        })
        found.push(...page.items.map((session) => session.id).filter((other) => other.startsWith(id)))
        seen += page.items.length
        cursor = page.cursor
      } while (cursor !== undefined && seen < compared && found.length < 10)
      const [only] = found
      if (only === undefined) return yield* error
      if (found.length > 1) {
        const why = `more than one session begins with ${id}`
        const refusal = new UsageError({ message: `${why}: ${found.join(", ")}; use more of the id` })
        return yield* choose(why, found, refusal)
      }
      return yield* sessions.get(only)
    })
  )
})

/** The longest text that the list of sessions searches for. */
const longestSearch = 1_000

/** The only session whose title begins like this, in the directory, else anywhere; of several, the chosen one. */
const byBeginning = Effect.fn("SessionReference.byBeginning")(function* (text: string, directory: string) {
  if (text.length > longestSearch) return undefined
  const sessions = yield* SessionStore
  const begins = ({ title = "" }: Session) => title.toLowerCase().startsWith(text.toLowerCase())
  const among = (where: { readonly directory?: string }) =>
    Effect.map(sessions.list({ ...where, search: text, limit: 500 }), ({ items }) => items.filter(begins))
  const here = yield* among({ directory })
  const found = here.length > 0 ? here : yield* among({})
  if (found.length < 2) return found[0]
  const ids = found.map(({ id }) => id)
  const why = `more than one session has a title that begins with "${oneLine(text)}"`
  const some =
    ids.length > offered ? `${ids.slice(0, offered).join(", ")} and ${ids.length - offered} more` : ids.join(", ")
  return yield* choose(why, ids, new UsageError({ message: `${why}: ${some}; use more of the title, or an id` }))
})

/** The session of the reference, or `undefined` for an unknown title or name. A title counts whole. */
export const find = Effect.fn("SessionReference.find")(function* (reference: Reference, directory: string) {
  if (reference.type === "id") return yield* byID(reference.id)
  return (yield* byTitle(reference.title, directory)) ?? (yield* byAddress(reference.title))
})

const unknown = (text: string, forms: string) =>
  new NotFound({ message: `there is no session called "${oneLine(text)}"; give ${forms}, or AGENT/SESSION` })

/** The session that an id or a whole title names, for a verb that cannot be undone. */
export const exactly = Effect.fn("SessionReference.exactly")(function* (text: string) {
  const found = yield* find(yield* parse(text), yield* Folder.current)
  return found ?? (yield* unknown(text, "its id, its whole title"))
})

/**
 * The session for any other verb: the named one, also by the beginning of its title, else the last used in the directory,
 * else the last used anywhere.
 */
export const resolve = Effect.fn("SessionReference.resolve")(function* (text: string | undefined, directory: string) {
  if (text !== undefined) {
    const found = (yield* find(yield* parse(text), directory)) ?? (yield* byBeginning(text, directory))
    return found ?? (yield* unknown(text, "its id, its title, the beginning of either"))
  }
  const sessions = yield* SessionStore
  const here = yield* sessions.list({ directory, limit: 1 })
  const last = here.items[0] ?? (yield* sessions.list({ limit: 1 })).items[0]
  return last ?? (yield* noSessions())
})

/** The session for a reading verb in the current folder. */
export const resolveHere = (text: string | undefined) =>
  Effect.flatMap(Folder.current, (directory) => resolve(text, directory))

/** What help says of a session that need not be named. */
export const lastUsed =
  "SESSION is an id, a title, or the beginning of either. Default: the session used last in this folder, or else the one used last anywhere."

/** The session of this terminal, if it was prompted in this folder and still exists. */
const ofTerminal = Effect.fnUntraced(function* (directory: string) {
  const crumb = yield* Breadcrumb.last
  if (crumb === undefined || crumb.directory !== directory) return undefined
  const sessions = yield* SessionStore
  return yield* Effect.catchTag(sessions.get(crumb.sessionID), "SessionNotFound", () => Effect.succeed(undefined))
})

/** The last used session of the folder that no agent created. */
const ofFolder = Effect.fnUntraced(function* (directory: string) {
  const sessions = yield* SessionStore
  let cursor: string | undefined
  do {
    const page = yield* sessions.list({ directory, limit: 100, cursor })
    const found = page.items.find(({ parentID }) => parentID === undefined)
    if (found !== undefined) return found
    cursor = page.cursor
  } while (cursor !== undefined)
  return undefined
})

/** The most recent session of this terminal, else of this folder. Spec: CL-260. */
export const recent = Effect.fn("RecentSession.recent")(function* (directory: string) {
  const found = (yield* ofTerminal(directory)) ?? (yield* ofFolder(directory))
  if (found !== undefined) return found
  return yield* new NotFound({
    message: `no session was used in ${oneLine(directory, 400)}; daybook prompt starts one, daybook sessions lists others`
  })
})
