/** `PermissionStore` over the table `approval`, which the migrations create. Spec: PM-3, PM-40..PM-45. */
import { SqlClient } from "@effect/sql"
import { Clock, Effect, Layer, Schema } from "effect"
import { folderIdentity } from "./FolderIdentity.ts"
import { PermissionStore, PermissionStoreError, SavedApproval, type ApprovalSource } from "./PermissionStore.ts"
import type { Approval } from "./Rule.ts"

const columns = `number, folder, permission, resource, nullif(definition, '') AS definition, session_id AS sessionID,
  call_id AS callID, agent, uid, time_created AS savedAt, uses, time_used AS usedAt, time_revoked AS revokedAt,
  revoked_uid AS revokedBy`

const decodeRows = Schema.decodeUnknown(Schema.Array(SavedApproval))

/** A field that is null in its row is absent. */
const read = (rows: ReadonlyArray<object>) =>
  decodeRows(rows.map((row) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))))

const failed =
  (operation: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, PermissionStoreError, R> =>
    Effect.mapError(effect, (cause) => new PermissionStoreError({ operation, cause }))

/** The user that this process works for; none where the system has no users. */
const ownUid = (): number | null => process.getuid?.() ?? null

/** Uses of one approval are written at most this often, in milliseconds. */
const usesEvery = 60_000

/** Uses of one approval that are not written yet. */
interface Counted {
  readonly uses: number
  readonly writtenAt: number
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const counted = new Map<number, Counted>()

  const standing = (folder: string) =>
    Effect.tryPromise({
      try: () => folderIdentity(folder),
      catch: (cause) => new PermissionStoreError({ operation: "looking at their folder", cause })
    })

  const select = (folder: string, identity: string, permission?: string) =>
    Effect.flatMap(
      sql`SELECT ${sql.literal(columns)} FROM approval WHERE folder = ${folder} AND identity = ${identity}
        AND ${permission === undefined ? sql.literal("TRUE") : sql`(permission = ${permission} OR permission GLOB '*[*?]*')`}
        AND time_revoked IS NULL ORDER BY number`,
      read
    )

  const writeUses = Effect.fnUntraced(function* (now: number, every: number) {
    for (const [number, entry] of counted) {
      const { uses } = entry
      if (uses === 0 || now - entry.writtenAt < every) continue
      // Taken out first: a call meanwhile must not write them as well.
      counted.set(number, { uses: 0, writtenAt: now })
      yield* sql`UPDATE approval SET uses = uses + ${uses}, time_used = ${now} WHERE number = ${number}`
    }
  }, failed("counting their uses"))

  yield* Effect.addFinalizer(() =>
    Clock.currentTimeMillis.pipe(
      Effect.flatMap((now) => writeUses(now, 0)),
      Effect.catchAll((error) => Effect.logWarning(error.message, error.cause))
    )
  )

  return PermissionStore.of({
    list: Effect.fn("PermissionStore.list")(function* (folder, permission) {
      const identity = yield* standing(folder)
      return yield* failed("reading them")(select(folder, identity, permission))
    }),
    listAll: Effect.flatMap(sql`SELECT ${sql.literal(columns)} FROM approval ORDER BY number`, read).pipe(
      failed("reading them"),
      Effect.withSpan("PermissionStore.listAll")
    ),
    save: Effect.fn("PermissionStore.save")(function* (
      folder: string,
      approvals: ReadonlyArray<Approval>,
      { agent, callID, sessionID }: ApprovalSource
    ) {
      if (approvals.length === 0) return []
      const identity = yield* standing(folder)
      const now = yield* Clock.currentTimeMillis
      const rows = approvals.map(({ definition = "", permission, resource }) => ({
        folder,
        identity,
        permission,
        resource,
        definition,
        session_id: sessionID,
        call_id: callID,
        agent,
        uid: ownUid(),
        time_created: now
      }))
      // One statement, so it is stored whole or not at all without a transaction of its own.
      const insert = sql`INSERT INTO approval ${sql.insert(rows)} ON CONFLICT DO NOTHING`
      const all = yield* failed("saving one")(Effect.zipRight(insert, select(folder, identity)))
      return all.filter((saved) =>
        approvals.some(
          ({ definition, permission, resource }) =>
            saved.definition === definition && saved.permission === permission && saved.resource === resource
        )
      )
    }),
    used: Effect.fn("PermissionStore.used")(function* (numbers) {
      const now = yield* Clock.currentTimeMillis
      for (const number of numbers) {
        const { uses = 0, writtenAt = -Infinity } = counted.get(number) ?? {}
        counted.set(number, { uses: uses + 1, writtenAt })
      }
      yield* writeUses(now, usesEvery)
    }),
    revoke: Effect.fn("PermissionStore.revoke")(function* (numbers) {
      if (numbers.length === 0) return []
      const now = yield* Clock.currentTimeMillis
      return yield* failed("revoking them")(
        Effect.flatMap(
          sql`UPDATE approval SET time_revoked = ${now}, revoked_uid = ${ownUid()}
            WHERE ${sql.in("number", numbers)} AND time_revoked IS NULL RETURNING ${sql.literal(columns)}`,
          read
        )
      )
    })
  })
})

/** Approvals in the host's database. */
export const layer: Layer.Layer<PermissionStore, never, SqlClient.SqlClient> = Layer.scoped(PermissionStore, make)
