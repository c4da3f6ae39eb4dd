/**
 * Places sessions at addresses: creates a session there on first use, finds a session, or assigns an address later. A
 * session gets at most one address, and an address belongs to one session; between concurrent requests the commit
 * decides. Spec: AD-1..AD-6 in specs/sessions.md.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { Effect, Option, Schema } from "effect"
import { Address, addressKey, idPrefix } from "@daybook/log/domain/Address"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { unfinished } from "@daybook/log/domain/Imported"
import { InvalidInput, validate } from "@daybook/log/domain/InvalidInput"
import type { Session } from "@daybook/log/domain/Message"
import { AddressTaken } from "@daybook/log/domain/Title"
import { Location } from "@daybook/log/domain/Values"
import { type Draft, draft, type EventOfType } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { attempts, uncontested } from "../support/Contested.ts"
import { isWithin } from "../support/TextFile.ts"
import { isHere, Workspaces } from "../workspace/Workspaces.ts"
import type { Placement } from "./SessionOptions.ts"

// Verbs on an existing session: a missing or removed session is `SessionNotFound` (IB-9), and an unfinished import is
// not changed (IM-23).

type Tagged = { readonly _tag: string }

export const makeExisting = Effect.gen(function* () {
  const store = yield* SessionStore

  const unlessRemoved = <A, E extends Tagged>(sessionID: SessionID, effect: Effect.Effect<A, E>) =>
    Effect.tapError(effect, ({ _tag }) =>
      _tag === "RunInterrupted"
        ? Effect.void
        : Effect.catchAll(store.get(sessionID), (error) =>
            error._tag === "SessionNotFound" ? Effect.fail(error) : Effect.void
          )
    )

  /** Another event among the events of an import would end the import for good (IM-43). */
  const imported = Effect.fnUntraced(function* (sessionID: SessionID) {
    const refused = unfinished(sessionID, (yield* store.get(sessionID)).imported)
    if (refused !== undefined) return yield* refused
  })

  return {
    unlessRemoved,
    imported,
    /** A verb that changes a session. */
    changes:
      <A, E extends Tagged, Rest extends ReadonlyArray<unknown>>(
        run: (sessionID: SessionID, ...rest: Rest) => Effect.Effect<A, E>
      ) =>
      (sessionID: SessionID, ...rest: Rest) =>
        unlessRemoved(sessionID, Effect.zipRight(imported(sessionID), run(sessionID, ...rest))),
    /** A verb that reads. It looks the session up last, so that a removed session is not returned as empty. */
    reads:
      <A, E extends Tagged, Rest extends ReadonlyArray<unknown>>(
        run: (sessionID: SessionID, ...rest: Rest) => Effect.Effect<A, E>
      ) =>
      (sessionID: SessionID, ...rest: Rest) =>
        Effect.zipLeft(unlessRemoved(sessionID, run(sessionID, ...rest)), store.get(sessionID))
  }
})

export type Existing = Effect.Effect.Success<typeof makeExisting>

// Normalizes Locations: two spellings of one path are one Location.

/** The Location with its real path. The folder must exist. */
const canonical = Effect.fn("Locations.canonical")(function* (location: Location) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const absolute = path.resolve(location.directory)
  const refuse = (details: string) => new InvalidInput({ field: "directory", details })
  const real = yield* Effect.mapError(fs.realPath(absolute), () => refuse(`there is no folder ${absolute}`))
  const info = yield* Effect.mapError(fs.stat(real), () => refuse(`${absolute} cannot be read`))
  if (info.type !== "Directory") return yield* refuse(`${absolute} is not a folder`)
  return { ...location, directory: real }
})

/** A Location whose workspace another process has: its folder is looked up there. */
const elsewhere = (path: Path.Path, location: Location) =>
  path.isAbsolute(location.directory)
    ? Effect.succeed({ ...location, directory: path.resolve(location.directory) })
    : new InvalidInput({ field: "directory", details: "expected an absolute path in the workspace" })

/** The Location, if its folder is in its workspace. */
const inWorkspace = Effect.fnUntraced(function* (folder: string, location: Location) {
  const fs = yield* FileSystem.FileSystem
  const root = yield* Effect.orElseSucceed(fs.realPath(folder), () => folder)
  if (isWithin(root, location.directory)) return location
  const details = `${location.directory} is not in the workspace ${location.workspaceID}, which is ${folder} here`
  return yield* new InvalidInput({ field: "directory", details })
})

export const makeLocations = Effect.gen(function* () {
  const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const path = yield* Path.Path
  const workspaces = yield* Workspaces
  const placed = Effect.fnUntraced(function* (location: Location) {
    if (!isHere(workspaces, location)) return yield* elsewhere(path, location)
    const found = yield* canonical(location)
    const folder = location.workspaceID === undefined ? undefined : workspaces?.[location.workspaceID]
    return folder === undefined ? found : yield* inWorkspace(folder, found)
  })
  return {
    place: (location: Location) =>
      Effect.flatMap(validate("location", Location, location), (decoded) => Effect.provide(placed(decoded), platform)),
    /** The canonical path under which a folder's sessions are stored; if it is gone, the path made absolute. */
    folder: (directory: string) =>
      Effect.provide(canonical({ directory }), platform).pipe(
        Effect.map((location) => location.directory),
        Effect.catchTag("InvalidInput", () => Effect.succeed(path.resolve(directory)))
      )
  }
})

export type Locations = Effect.Effect.Success<typeof makeLocations>

const sameAddress = (one: Address | undefined, other: Address): boolean =>
  one !== undefined && addressKey(one) === addressKey(other)

const refuse = (field: string, details: string) => new InvalidInput({ field, details })

type Checked = EventOfType<"session.next.addressed">["data"]

/** Validates a caller's placement. `within` leads to it from the caller's arguments. */
const checked = Effect.fnUntraced(function* (path: Path.Path, placement: Placement, within: string) {
  const address = yield* validate(`${within}address`, Address, placement.address)
  if (address.session.startsWith(idPrefix)) {
    return yield* refuse(
      `${within}address.session`,
      `names that begin with ${idPrefix} are reserved for session ids; choose another name`
    )
  }
  if (placement.root === undefined) return { address }
  const root = yield* validate(`${within}root`, Schema.NonEmptyString, placement.root)
  // Normalized, because paths below the root are recognized by their text.
  return path.isAbsolute(root) && !root.includes("\0")
    ? { address, root: path.resolve(root) }
    : yield* refuse(`${within}root`, "expected the absolute path of a folder")
})

export const make = Effect.gen(function* () {
  const log = yield* EventLog
  const store = yield* SessionStore
  const path = yield* Path.Path

  const check = (placement: Placement) => checked(path, placement, "placement.")

  const addressed = Effect.fn("Sessions.addressed")(function* (address: Address) {
    return yield* store.addressed(yield* validate("address", Address, address))
  })

  /** The session at this address. Fails if the caller requested another id. */
  const occupant = (address: Address, id: SessionID | undefined) =>
    Effect.flatMap(store.addressed(address), (found) =>
      found === undefined || id === undefined || found.id === id
        ? Effect.succeed(Option.fromNullable(found))
        : Effect.fail(new AddressTaken({ address: addressKey(address) }))
    )

  /**
   * Appends a session's first events, with an address if given, and returns the session. Of concurrent creations one
   * succeeds, and the others return its session (CR-2, AD-3). `id` is the id that the caller requested.
   */
  const begin = (sessionID: SessionID, created: Draft, id: SessionID | undefined, placement: Checked | undefined) => {
    const append = (drafts: readonly [Draft, ...ReadonlyArray<Draft>]) =>
      log.append(sessionID, drafts, { expectedSeq: -1 }).pipe(
        Effect.catchTag("SeqConflict", () => Effect.void),
        Effect.zipRight(store.get(sessionID)),
        // Another process removed the session in between: create it again.
        Effect.retry({ times: attempts, while: ({ _tag }) => _tag === "SessionNotFound" }),
        Effect.catchTag("SessionNotFound", (error) => Effect.die(error))
      )
    if (placement === undefined) return append([created])
    const { address } = placement
    return append([created, draft("session.next.addressed", placement)]).pipe(
      Effect.catchTag("EventRefused", (refused) =>
        Effect.flatMap(
          occupant(address, id),
          Option.match({ onNone: () => Effect.fail(refused), onSome: Effect.succeed })
        )
      ),
      // The session that took the address is already removed.
      Effect.retry({ times: 2, while: ({ _tag }) => _tag === "EventRefused" })
    )
  }

  const settleAt = Effect.fnUntraced(function* (sessionID: SessionID, placement: Checked) {
    const expectedSeq = yield* log.latest(sessionID)
    const { address, root }: Session = yield* store.get(sessionID)
    if (sameAddress(address, placement.address)) {
      if (root === placement.root) return
    } else if (address !== undefined) {
      return yield* refuse("address", `the session already has the address ${addressKey(address)}, which cannot change`)
    } else if ((yield* store.addressed(placement.address)) !== undefined) {
      return yield* new AddressTaken({ address: addressKey(placement.address) })
    }
    yield* log.append(sessionID, [draft("session.next.addressed", placement)], { expectedSeq })
  })

  const place = Effect.fn("Sessions.place")(function* (sessionID: SessionID, wanted: Placement) {
    yield* store.get(sessionID)
    const placement = yield* checked(path, wanted, "")
    yield* settleAt(sessionID, placement).pipe(
      // Another caller took the address or wrote to this session: read again.
      Effect.retry({ times: 2, while: ({ _tag }) => _tag === "EventRefused" }),
      uncontested
    )
  })

  return { addressed, begin, check, occupant, place }
})

export type Placements = Effect.Effect.Success<typeof make>
