/**
 * The subject of a socket: one agent or model, its sessions by address, and its world, the folder that it sees as the
 * whole file system. Spec: SO-50..SO-57 in specs/socket.md (SC-1..SC-4, CW-1..CW-5, DC-2, FL-1).
 */
import * as fs from "node:fs/promises"
import { join } from "node:path"
import { Effect, Either, Option, Schema } from "effect"
import { addressOf, nameFrom, type SharedSpaces } from "@daybook/files/layout/Layout"
import { type Address, idPrefix } from "@daybook/log/domain/Address"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import type { ModelRef } from "@daybook/log/domain/Values"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { agentDirectory } from "@daybook/transcript/row/Rows"
import { type Backend, Refused, refusedBy } from "./Backend.ts"
import { agentDefaultCwd, recheckCwd, resolveCwd, type ResolvedCwd } from "./Cwd.ts"
import { segmentsOf } from "./Request.ts"
import type { Resume, Send } from "./Wire.ts"

/** An agent or a model, by the name that its sessions are kept under. */
export type Subject = {
  readonly root: string
  readonly uid: number
  readonly shared: SharedSpaces
  readonly name: string
  readonly common: boolean
  /** The only space that is served; undefined for the user's sessions in every scope. */
  readonly space?: string | undefined
} & (
  | {
      readonly kind: "agent"
      readonly agent: string
      readonly chroot?: string | undefined
    }
  | { readonly kind: "model"; readonly ref: ModelRef }
)

/** The subject's socket, relative to the root, to the user's home in a common root, or to a space. */
export const socketOf = (subject: Subject): string =>
  subject.kind === "agent"
    ? `agent/${subject.name}.sock`
    : `model/${nameFrom(subject.ref.providerID)}/${subject.name}.sock`

type Target = Pick<Resume, "session" | "scope" | "shared">

const refuse = (code: Refused["code"], message: string) => new Refused({ code, message })

/** The address that a request names, if this subject may have sessions there (SC-4). */
export const addressIn = (subject: Subject, { scope, session, shared }: Target): Either.Either<Address, Refused> => {
  const { kind, name, uid } = subject
  if (subject.space !== undefined && (scope !== "shared" || shared !== subject.space)) {
    return Either.left(
      refuse(
        "EACCES",
        `this socket serves the shared space "${subject.space}" alone: scope "shared", shared "${subject.space}"`
      )
    )
  }
  if (scope !== "shared") return Either.right({ scope, uid, kind, name, session })
  // The request schema ensures that a shared scope names its space.
  const space = shared ?? ""
  const policy = Object.hasOwn(subject.shared, space) ? subject.shared[space] : undefined
  if (policy === undefined) return Either.left(refuse("EACCES", `there is no shared space "${space}" for you`))
  if (policy.agents !== undefined && !(kind === "agent" && policy.agents.includes(name))) {
    return Either.left(refuse("EACCES", `${kind} "${name}" may have no sessions in the shared space "${space}"`))
  }
  return Either.right({ scope, shared: space, kind, name, session })
}

const noSession = (session: string) => refuse("ENOENT", `there is no session "${session}"`)

const sameHouse = (a: Address, b: Address): boolean =>
  a.kind === b.kind &&
  a.name === b.name &&
  (a.scope === "shared" ? b.scope === "shared" && a.shared === b.shared : a.scope === b.scope)

/** Whether the session belongs to this subject, in the scope of the address. */
const isOf = Effect.fnUntraced(function* ({ store }: Backend, subject: Subject, address: Address, session: Session) {
  if (session.address !== undefined) return sameHouse(session.address, address)
  const created = yield* store.event(session.id, 0)
  const agent = created?.type === "session.created" ? created.data.agent : undefined
  const kept = addressOf({ id: session.id, agent }, undefined, subject.uid)
  return kept !== undefined && sameHouse(kept, address)
})

/** The session at the address, or with the id that is used as a name. Fails only if that id does not exist. */
export const find = Effect.fn("Subject.find")(function* (backend: Backend, subject: Subject, address: Address) {
  const { session: name } = address
  if (!name.startsWith(idPrefix)) return yield* Effect.mapError(backend.sessions.addressed(address), refusedBy)
  const id = Schema.decodeOption(SessionID)(name)
  if (Option.isNone(id)) return yield* noSession(name)
  const session = yield* Effect.mapError(backend.sessions.get(id.value), (error) =>
    error._tag === "SessionNotFound" ? noSession(name) : refusedBy(error)
  )
  const own = yield* Effect.mapError(isOf(backend, subject, address, session), refusedBy)
  return own ? session : yield* noSession(name)
})

/** Whether the session belongs to the subject, in any scope. */
export const owns = (backend: Backend, subject: Subject, session: Session): Effect.Effect<boolean, Refused> => {
  const { address } = session
  const { space } = subject
  if (space !== undefined && !(address?.scope === "shared" && address.shared === space)) return Effect.succeed(false)
  const { kind, name, uid } = subject
  const place = { kind, name, session: "default" }
  const house: Address =
    address?.scope === "shared"
      ? { scope: "shared", shared: address.shared, ...place }
      : { scope: address?.scope ?? "private", uid, ...place }
  return Effect.mapError(isOf(backend, subject, house, session), refusedBy)
}

const worldFailed = (cause: unknown): Refused => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown"
  return refuse("EIO", `the agent's world cannot be used (${code})`)
}

/** The real path of the subject's world; the default world is created if absent. */
export const worldOf = Effect.fn("Subject.world")(function* (subject: Subject) {
  const own = subject.kind === "agent" ? `agent/${subject.name}` : `model/${subject.name}.d`
  const given = subject.kind === "agent" ? subject.chroot : undefined
  const world = given ?? join(subject.root, "home", String(subject.uid), own, "root")
  return yield* Effect.tryPromise({
    try: async () => {
      if (given === undefined) await makeFolders(world, 0o700)
      return await fs.realpath(world)
    },
    catch: worldFailed
  })
})

/** The agent's default working directory. */
export const defaultCwdOf = ({ common, name, root, uid }: Subject) =>
  agentDefaultCwd({ root, name, agents: common ? `home/${uid}/agent` : undefined })

/** Refuses if another user owns the space: its sessions are in that user's database. */
export const checkSpaceOwner = Effect.fn("Subject.checkSpaceOwner")(function* (
  subject: Subject,
  space: string | undefined
) {
  const own = process.getuid?.()
  if (!subject.common || space === undefined || own === undefined) return
  const folder = join("shared", space)
  // The space does not exist: the first session creates it, and this user owns it.
  const owner = yield* Effect.promise(() =>
    fs.lstat(join(subject.root, folder)).then(
      ({ uid }) => uid,
      () => own
    )
  )
  if (owner === own) return
  return yield* refuse(
    "EACCES",
    `user ${owner} owns the shared space "${space}": use ${join(folder, socketOf(subject))}, if that user serves ${subject.kind} "${subject.name}" to others`
  )
})

/** Where a prompt runs. */
export interface PromptFolder {
  /** The world; undefined if the session stays at its host folder. */
  readonly world: string | undefined
  readonly cwd: ResolvedCwd
  /** Fails if the folder is no longer the one that was checked (CW-4). */
  readonly recheck: Effect.Effect<void, Refused>
}

const isRefused = ({ code, message }: { readonly code: Refused["code"]; readonly message: string }) =>
  refuse(code, message)

/**
 * Resolves the prompt's folder, or the default one. `byID` is the session, if it was named by id. `before` is the
 * folder of an earlier request with the same id: a repetition is answered even if that folder no longer exists (FR-8).
 */
export const placeOf = Effect.fn("Subject.place")(function* (
  subject: Subject,
  { cwd }: Pick<Send, "cwd">,
  byID: Session | undefined,
  before: Effect.Effect<string | undefined, Refused>
) {
  if (byID !== undefined && byID.root === undefined) {
    // It was created on the host, and clients cannot name host paths.
    if (cwd !== undefined) {
      return yield* refuse("EACCES", "this session works outside of the agent's world: omit cwd to continue it")
    }
    const { directory } = byID.location
    return {
      world: undefined,
      cwd: { directory, shown: agentDirectory(undefined, directory) },
      recheck: Effect.void
    }
  }
  const world = yield* worldOf(subject)
  const asked = cwd ?? (subject.kind === "agent" ? yield* Effect.mapError(defaultCwdOf(subject), isRefused) : "/")
  const found = yield* Effect.either(Effect.mapError(resolveCwd({ root: world, cwd: asked }), isRefused))
  if (Either.isLeft(found)) {
    const shown = `/${segmentsOf(asked).join("/")}`
    // Nothing runs there. If it is not a repetition after all, `recheck` refuses it.
    if ((yield* before) === shown) return { world, cwd: { directory: world, shown }, recheck: found.left }
    return yield* found.left
  }
  const resolved = found.right
  return { world, cwd: resolved, recheck: Effect.mapError(recheckCwd(world, resolved), isRefused) }
})
