/**
 * Stores a person's decisions about projects, one file each, in the person's own folder. A decision holds for one
 * folder (path, identity, owner) and for what the project brought then. Spec: TR-7..TR-12 in specs/security.md.
 */
import { createHash, randomUUID } from "node:crypto"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Clock, Effect, Option, Schema } from "effect"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { codeOf } from "@daybook/log/support/SystemError"
import { compile, test } from "../domain/Pattern.ts"
import { sharedCalls } from "../support/Keyed.ts"
import { beyond, Brought, makeSurveyor } from "./Brought.ts"
import {
  folderIdentity,
  foreign,
  holding,
  isTrusted,
  projectRoot,
  type TrustState,
  type Trust
} from "./ProjectTrust.ts"

/** A decision could not be read or stored. */
export class TrustError extends Schema.TaggedError<TrustError>("@daybook/core/TrustError")("TrustError", {
  path: Schema.String,
  details: Schema.String
}) {
  override get message() {
    return `${this.path}: ${this.details}`
  }
}

const Decision = Schema.Struct({
  version: Schema.Literal(2),
  path: Schema.NonEmptyString,
  identity: Schema.NonEmptyString,
  owner: Schema.Int,
  state: Schema.Literal("trusted", "restricted"),
  time: Schema.Int,
  brought: Schema.Array(Brought)
})
type Decision = typeof Decision.Type

/** What changed since the decision. */
export interface Changes {
  readonly added: ReadonlyArray<Brought>
  readonly removed: ReadonlyArray<Brought>
  readonly changed: ReadonlyArray<{ readonly before: Brought; readonly now: Brought }>
}

export interface Report {
  readonly root: string
  readonly standing: TrustState
  readonly brings: ReadonlyArray<Brought>
  /** Changes since the last decision; absent if there are none, or no decision about this folder. */
  readonly changes?: Changes
}

/** Where decisions are stored, and what needs none. */
export interface TrustOptions {
  /** The folder of the decisions; created with access for this user only. It must not be inside a project. */
  readonly folder: string
  /** The person's folders that are trusted without a decision. `*` matches in a name; a final `/**` all below. */
  readonly folders?: ReadonlyArray<string> | undefined
  /** Trusts every project, including those of other users: for one command, at the person's request. */
  readonly everything?: boolean | undefined
}

export interface TrustStore extends Trust {
  /** Surveys the project of a canonical folder. */
  readonly report: (directory: string) => Effect.Effect<Report, TrustError>
  /** Stores a decision about the content in the report. */
  readonly decide: (report: Report, state: Decision["state"]) => Effect.Effect<void, TrustError>
}

/** No decision is larger. */
const maximumBytes = 8 * 1024 * 1024

const decode = Schema.decodeUnknownOption(Schema.parseJson(Decision))
const encode = Schema.encodeSync(Schema.parseJson(Decision))

/** Identifies the folder that is at the root now. */
const standsAt = async (root: string) => {
  const [identity, { uid: owner }] = await Promise.all([folderIdentity(root), fs.lstat(root)])
  return { path: root, identity, owner }
}

/** Whether the pattern matches the folder. Pure. */
export const covers = (pattern: string, folder: string): boolean => {
  const below = pattern.endsWith("/**")
  const wanted = (below ? pattern.slice(0, -3) : pattern).replace(/\/+$/, "").split("/")
  const names = folder.split("/")
  if (below ? names.length < wanted.length : names.length !== wanted.length) return false
  return wanted.every((name, at) => test(compile(name), names[at] ?? ""))
}

const differences = (before: ReadonlyArray<Brought>, now: ReadonlyArray<Brought>): Changes => {
  const then = new Map(before.map((each) => [each.path, each]))
  const here = new Set(now.map((each) => each.path))
  return {
    added: now.filter((each) => !then.has(each.path)),
    removed: before.filter((each) => !here.has(each.path)),
    changed: now.flatMap((each) => {
      const old = then.get(each.path)
      return old === undefined || old.hash === each.hash ? [] : [{ before: old, now: each }]
    })
  }
}

const isEmpty = ({ added, changed, removed }: Changes) => added.length + removed.length + changed.length === 0

const approvedOf = (things: ReadonlyArray<Brought>): ReadonlySet<string> => new Set(things.map((each) => each.path))

/** The store's folder and the surveyor of projects. */
interface Parts extends TrustOptions {
  readonly surveyor: ReturnType<typeof makeSurveyor>
}

const fileOf = ({ folder }: TrustOptions, root: string) =>
  path.join(folder, `${createHash("sha256").update(root).digest("hex")}.json`)

/** Whether everything at the root and every approved file is unchanged. */
const isUnchanged = async (
  { surveyor }: Parts,
  { brought, path: root }: Decision,
  now: ReadonlyArray<Brought>
): Promise<boolean> => {
  const known = new Map(brought.map((each) => [each.path, each.hash]))
  if (now.some((each) => known.get(each.path) !== each.hash)) return false
  const seen = new Set(now.map((each) => each.path))
  for (const each of brought) {
    if (!seen.has(each.path) && (await surveyor.look(root, each.path))?.hash !== each.hash) return false
  }
  return true
}

/** The decision about exactly this folder. A decision that cannot be read is ignored. */
const read = async (options: TrustOptions, root: string): Promise<Decision | undefined> => {
  const handle = await fs
    .open(fileOf(options, root), constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
    .catch(() => undefined)
  if (handle === undefined) return undefined
  try {
    const stats = await handle.stat()
    if (!stats.isFile() || stats.size > maximumBytes || stats.uid !== (process.geteuid?.() ?? stats.uid)) {
      return undefined
    }
    const decision = Option.getOrUndefined(decode(await handle.readFile("utf8")))
    if (decision === undefined) return undefined
    const { identity, owner } = await standsAt(root)
    const same = decision.path === root && decision.identity === identity && decision.owner === owner
    return same ? decision : undefined
  } finally {
    await handle.close()
  }
}

/** Writes a decision in one step: a reader finds the old one or the new one. */
const write = async (options: TrustOptions, decision: Decision): Promise<void> => {
  const file = fileOf(options, decision.path)
  const temporary = `${file}.${randomUUID()}.tmp`
  try {
    await fs.writeFile(temporary, encode(decision), { mode: 0o600, flag: "wx", flush: true })
    await fs.rename(temporary, file)
  } finally {
    await fs.rm(temporary, { force: true })
  }
}

const undecided = "you have not decided whether to trust it"
const hasChanged = "what it brings has changed since it was trusted"

/** The project's standing, from the options, the decision and what it brings now. */
const standingOf = async (parts: Parts, root: string): Promise<TrustState> => {
  const { everything = false, folders = [], surveyor } = parts
  if (everything) return { state: "trusted", why: "this command was told to trust it", decided: true }
  const held = holding(root)
  if (held === "own" && folders.some((pattern) => covers(pattern, root))) {
    return { state: "trusted", why: "the configuration trusts it", decided: true }
  }
  const [decision, brings] = await Promise.all([read(parts, root), surveyor.atRoot(root)])
  if (brings.some(({ hash }) => hash === beyond)) {
    return { state: "restricted", why: "its folder .daybook exceeds the limits of a survey", decided: false }
  }
  const unchanged = decision !== undefined && (await isUnchanged(parts, decision, brings))
  if (decision?.state === "restricted" && unchanged) {
    return { state: "restricted", why: "it was decided not to trust it", decided: true }
  }
  if (decision?.state === "trusted") {
    return unchanged
      ? {
          state: "trusted",
          why: `you trusted it on ${new Date(decision.time).toISOString().slice(0, 10)}`,
          decided: true,
          approved: approvedOf(decision.brought)
        }
      : { state: "unknown", why: hasChanged, decided: false }
  }
  if (held === "foreign") return foreign
  if (brings.length > 0) return { state: "unknown", why: undecided, decided: false }
  return held === "own"
    ? { state: "trusted", why: "it brings nothing, and is this user's own", decided: false, approved: new Set() }
    : { state: "unknown", why: "others may write to it", decided: false }
}

/** The standing in a report: a trusted project that brings something new is unknown until it is decided. Pure. */
const reported = (now: TrustState, brings: ReadonlyArray<Brought>, changes: Changes | undefined): TrustState => {
  if (!isTrusted(now) || now.approved === undefined) return now
  const asks = changes === undefined ? brings.length > 0 : !isEmpty(changes)
  return asks ? { state: "unknown", why: changes === undefined ? undecided : hasChanged, decided: false } : now
}

const unreadable = (root: string) => (cause: unknown) =>
  new TrustError({ path: root, details: `it cannot be read (${codeOf(cause, String(cause))})` })

/** Opens the decisions in a folder. Every query reads the folder, so a decision takes effect in all processes. */
export const make = (options: TrustOptions): TrustStore => {
  const parts: Parts = { ...options, surveyor: makeSurveyor() }

  const standing = sharedCalls((root) => standingOf(parts, root))

  const of = (root: string): Effect.Effect<TrustState> =>
    Effect.orElseSucceed(
      Effect.tryPromise(() => standing(root)),
      (): TrustState => ({ state: "restricted", why: "it cannot be read", decided: false })
    )

  return {
    of,
    report: Effect.fn("TrustStore.report")(function* (directory) {
      const root = yield* projectRoot(directory)
      const [now, brings, decision] = yield* Effect.all([
        of(root),
        Effect.tryPromise({ try: () => parts.surveyor.survey(root), catch: unreadable(root) }),
        Effect.tryPromise({ try: () => read(parts, root), catch: unreadable(root) })
      ])
      const changes = decision === undefined ? undefined : differences(decision.brought, brings)
      const standing = reported(now, brings, changes)
      return { root, standing, brings, ...(changes === undefined || isEmpty(changes) ? {} : { changes }) }
    }),
    decide: Effect.fn("TrustStore.decide")(function* ({ brings, root }, state) {
      const time = yield* Clock.currentTimeMillis
      yield* Effect.tryPromise({
        try: async () => {
          await makeFolders(options.folder, 0o700)
          await fs.chmod(options.folder, 0o700)
          await write(options, { version: 2, ...(await standsAt(root)), state, time, brought: brings })
        },
        catch: (cause) =>
          new TrustError({
            path: fileOf(options, root),
            details: `the decision cannot be kept (${codeOf(cause, String(cause))})`
          })
      })
    })
  }
}
