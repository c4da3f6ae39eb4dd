/** Saved approvals: to which folder they belong, who gave them, and how they are counted and revoked. */
import { mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope, TestClock } from "effect"
import { PermissionStore } from "../../packages/core/src/permission/PermissionStore.ts"
import { patterns, source } from "../support/Approvals.ts"
import { temporaryFolder } from "../support/Database.ts"

const [edit, bash] = [
  { permission: "edit", resource: "src/*" },
  { permission: "bash", resource: "it's; DROP TABLE approval" }
]

/** A folder that is there, and its place. */
const makeFolder = Effect.map(temporaryFolder, (base) => {
  const folder = join(base, "clone")
  mkdirSync(folder)
  return { base, folder }
})

/** One kind of database with saved approvals. */
export interface ApprovalStore {
  /** For the titles. */
  readonly name: string
  readonly layer: Layer.Layer<PermissionStore>
  /** A new, empty database that several processes may open. */
  readonly place: Effect.Effect<Layer.Layer<PermissionStore | SqlClient.SqlClient, unknown>, unknown, Scope.Scope>
}

/** Registers every test of the contract of `PermissionStore`. */
export const approvalContract = ({ layer, name, place }: ApprovalStore): void => {
  it.layer(layer)(`saved approvals, ${name}`, (it) => {
    it.scoped("PM-3: approvals belong to their folder, and saving one twice keeps one", () =>
      Effect.gen(function* () {
        const store = yield* PermissionStore
        const [{ folder: a }, { folder: b }] = [yield* makeFolder, yield* makeFolder]
        const [first] = yield* store.save(a, [edit], source)
        const again = yield* store.save(a, [edit, bash, edit], source)
        yield* store.save(b, [], source)
        assert.sameDeepMembers(patterns(yield* store.list(a)), [edit, bash])
        assert.strictEqual(again[0]?.number, first?.number)
        assert.deepStrictEqual(yield* store.list(b), [])
      })
    )

    it.scoped("PM-43: an approval says when, in which session, by which agent and by whose answer it was saved", () =>
      Effect.gen(function* () {
        const store = yield* PermissionStore
        const { folder } = yield* makeFolder
        yield* TestClock.adjust("5 seconds")
        const [saved] = yield* store.save(folder, [{ ...edit, definition: "abc" }], source)
        assert.deepStrictEqual(saved, {
          ...source,
          ...edit,
          number: saved?.number ?? 0,
          folder,
          definition: "abc",
          ...(process.getuid === undefined ? {} : { uid: process.getuid() }),
          savedAt: 5_000,
          uses: 0
        })
      })
    )

    it.scoped("PM-40: the same pattern under two definitions is two approvals", () =>
      Effect.gen(function* () {
        const store = yield* PermissionStore
        const { folder } = yield* makeFolder
        const definitions = [undefined, "one", "two"]
        for (const definition of definitions) {
          const approval = definition === undefined ? edit : { ...edit, definition }
          const saved = yield* store.save(folder, [approval], source)
          assert.deepStrictEqual(
            saved.map((each) => each.definition),
            [definition]
          )
        }
        assert.lengthOf(yield* store.list(folder), 3)
      })
    )

    for (const [how, replace] of [
      ["made anew", (folder: string) => rmSync(folder, { recursive: true })],
      ["moved away", (folder: string, base: string) => renameSync(folder, join(base, "old"))]
    ] as const) {
      it.scoped(`PM-42: another folder at the same path inherits nothing when the first was ${how}`, () =>
        Effect.gen(function* () {
          const store = yield* PermissionStore
          const { base, folder } = yield* makeFolder
          yield* store.save(folder, [edit], source)
          replace(folder, base)
          mkdirSync(folder)
          assert.deepStrictEqual(yield* store.list(folder), [])
          yield* store.save(folder, [bash], source)
          assert.deepStrictEqual(patterns(yield* store.list(folder)), [bash])
        })
      )
    }

    it.scoped("PM-42: a link that stands where the folder was gives nothing of the folder behind it", () =>
      Effect.gen(function* () {
        const store = yield* PermissionStore
        const { base, folder } = yield* makeFolder
        yield* store.save(folder, [edit], source)
        const other = join(base, "other")
        mkdirSync(other)
        rmSync(folder, { recursive: true })
        symlinkSync(other, folder)
        assert.deepStrictEqual(yield* store.list(folder), [])
      })
    )

    it.scoped("PM-42: the first folder gets its approvals back when it returns to its path", () =>
      Effect.gen(function* () {
        const store = yield* PermissionStore
        const { base, folder } = yield* makeFolder
        yield* store.save(folder, [edit], source)
        renameSync(folder, join(base, "away"))
        mkdirSync(folder)
        rmSync(folder, { recursive: true })
        renameSync(join(base, "away"), folder)
        assert.deepStrictEqual(patterns(yield* store.list(folder)), [edit])
      })
    )

    it.scoped("PM-5: a folder that cannot be looked at is a typed error, and nothing is saved for it", () =>
      Effect.gen(function* () {
        const store = yield* PermissionStore
        const { folder } = yield* makeFolder
        const gone = join(folder, "gone")
        for (const effect of [store.list(gone), store.save(gone, [edit], source)]) {
          const error = yield* Effect.flip(effect)
          assert.include(error.message, "looking at their folder")
        }
        assert.notInclude(
          (yield* store.listAll).map((saved) => saved.folder),
          gone
        )
      })
    )

    it.scoped("PM-45: a revoked approval no longer counts, is listed with all, and can be given again", () =>
      Effect.gen(function* () {
        const store = yield* PermissionStore
        const { folder } = yield* makeFolder
        const [one] = yield* store.save(folder, [edit], source)
        yield* store.save(folder, [bash], source)
        const number = one?.number ?? 0
        yield* TestClock.adjust("1 second")
        const revoked = yield* store.revoke([number, number, 9_999])
        assert.deepStrictEqual(patterns(revoked), [edit])
        assert.deepStrictEqual(patterns(yield* store.list(folder)), [bash])
        assert.deepStrictEqual(yield* store.revoke([number]), [])
        const [again] = yield* store.save(folder, [edit], source)
        assert.notStrictEqual(again?.number, number)
        const kept = (yield* store.listAll).find((saved) => saved.number === number)
        assert.isAtLeast(kept?.revokedAt ?? 0, (kept?.savedAt ?? 0) + 1_000)
        assert.strictEqual(kept?.revokedBy, process.getuid?.())
      })
    )
  })

  it.scoped("PM-44: uses of an approval are written at most once a minute, and none is lost when the host ends", () =>
    Effect.gen(function* () {
      const opened = yield* place
      const { folder } = yield* makeFolder
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(opened, scope)
      const [store, sql] = [Context.get(context, PermissionStore), Context.get(context, SqlClient.SqlClient)]
      const [saved] = yield* store.save(folder, [edit], source)
      const number = saved?.number ?? 0
      const written = Effect.map(
        sql<{ readonly uses: number; readonly time_used: number | null }>`SELECT uses, time_used FROM approval`,
        ([row]) => [row?.uses, row?.time_used]
      )
      assert.deepStrictEqual(yield* written, [0, null])
      yield* Effect.replicateEffect(store.used([number]), 5)
      assert.deepStrictEqual(yield* written, [1, 0])
      yield* TestClock.adjust("61 seconds")
      yield* store.used([number])
      assert.deepStrictEqual(yield* written, [6, 61_000])
      yield* Effect.all([store.used([number]), store.used([number])], { concurrency: 2 })
      assert.deepStrictEqual(yield* written, [6, 61_000])
      yield* Scope.close(scope, Exit.void)
      const later = Context.get(yield* Layer.build(opened), PermissionStore)
      assert.strictEqual((yield* later.list(folder))[0]?.uses, 8)
    })
  )

  it.effect("PM-5: a database without the table is a typed error that says what failed", () =>
    Effect.gen(function* () {
      const [store, sql] = [yield* PermissionStore, yield* SqlClient.SqlClient]
      yield* sql`DROP TABLE approval`
      const error = yield* Effect.flip(store.list(process.cwd()))
      assert.strictEqual(error._tag, "PermissionStoreError")
      assert.include(error.message, "reading them")
    }).pipe(Effect.provide(Layer.unwrapScoped(place)))
  )
}
