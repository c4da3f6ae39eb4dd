/** Addresses: made on first use, one session each, given once. AD-1..AD-6 in specs/sessions.md; NA-1, NA-2, SC-1. */
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { CreateOptions } from "../../../packages/core/src/session/SessionOptions.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { Address, addressKey, isName, parseAddressKey } from "../../../packages/log/src/domain/Address.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { eventTypes, newSession, type Runtimes, scene, temporaryFolder } from "../../support/Harness.ts"

export const addressing = ({ open, runtime }: Runtimes) => {
  const location = { directory: tmpdir() }

  const at = (session: string, name = "coder"): Address => ({
    scope: "private",
    uid: 1000,
    kind: "agent",
    name,
    session
  })

  /** The address with one field as a client could send it. */
  const written = (field: string, value: unknown) => ({ ...at("default"), [field]: value }) as unknown as Address

  const names: ReadonlyArray<readonly [name: string, taken: boolean]> = [
    ["a", true],
    ["0", true],
    ["default", true],
    ["list", true],
    ["current", true],
    ["by-cwd", true],
    ["Review.2+b_c-d", true],
    ["a..b", true],
    ["a.d.b", true],
    ["index2", true],
    ["a".repeat(64), true],
    ["", false],
    ["a".repeat(65), false],
    [".", false],
    ["..", false],
    [".hidden", false],
    ["-a", false],
    ["+a", false],
    ["_a", false],
    ["a/b", false],
    ["../../etc", false],
    ["a\\b", false],
    ["a b", false],
    ["a\n", false],
    ["a\0", false],
    ["ä", false],
    ["a\u202E", false],
    ["a.sock", false],
    ["a.d", false],
    ["%2e%2e", false],
    ["~", false]
  ]

  it.each(names)("NA-1: the name %j is taken: %s", (name, taken) => {
    assert.strictEqual(isName(name), taken)
    for (const field of ["session", "name"]) assert.strictEqual(Schema.is(Address)(written(field, name)), taken)
    assert.strictEqual(
      Schema.is(Address)({ scope: "shared", shared: name, kind: "model", name: "m", session: "s" }),
      taken
    )
  })

  it("NA-2: no session is called index; agents, models and spaces may be", () => {
    assert.isFalse(Schema.is(Address)(at("index")))
    assert.isTrue(Schema.is(Address)(at("default", "index")))
    assert.isTrue(Schema.is(Address)({ scope: "shared", shared: "index", kind: "agent", name: "a", session: "s" }))
  })

  it.prop("AD-2: a key is one address's, and gives it back", [Address, Address], ([one, other]) => {
    assert.deepStrictEqual(Schema.decodeUnknownSync(Address)(parseAddressKey(addressKey(one))), one)
    assert.strictEqual(addressKey(one) === addressKey(other), JSON.stringify(one) === JSON.stringify(other))
  })

  it.layer(runtime())("addresses", (it) => {
    it.effect("AD-3: a session is made at its address on first use, in one append, and found there from then on", () =>
      Effect.gen(function* () {
        const [sessions, log] = [yield* Sessions, yield* EventLog]
        const address = at("first-use")
        assert.isUndefined(yield* sessions.addressed(address))
        const made = yield* sessions.create({ location, title: "one", placement: { address, root: "/srv/root" } })
        assert.deepStrictEqual(made.address, address)
        assert.strictEqual(made.root, "/srv/root")
        const { events } = yield* log.read({ sessionID: made.id })
        assert.deepStrictEqual(
          events.map(({ data, type }) => [type, type === "session.next.addressed" ? data : undefined]),
          [
            ["session.created", undefined],
            ["session.next.addressed", { address, root: "/srv/root" }]
          ]
        )
        assert.deepStrictEqual(yield* sessions.addressed(address), made)
        const again = yield* sessions.create({ location: { directory: "/no/such/folder" }, placement: { address } })
        assert.deepStrictEqual(again, made)
      })
    )

    it.effect("AD-2: scopes, owners, kinds and names are places of their own", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const own = { kind: "agent", name: "own", session: "default" } as const
        const addresses: ReadonlyArray<Address> = [
          { scope: "private", uid: 1, ...own },
          { scope: "private", uid: 2, ...own },
          { scope: "temp", uid: 1, ...own },
          { scope: "shared", shared: "1", ...own },
          { scope: "private", uid: 1, ...own, kind: "model" },
          { scope: "private", uid: 1, ...own, name: "other" },
          { scope: "private", uid: 1, ...own, session: "other" }
        ]
        const made = yield* Effect.forEach(addresses, (address) =>
          sessions.create({ location, placement: { address } })
        )
        assert.strictEqual(new Set(made.map(({ id }) => id)).size, addresses.length)
        for (const [index, address] of addresses.entries()) {
          assert.strictEqual((yield* sessions.addressed(address))?.id, made[index]?.id)
        }
      })
    )

    it.effect("AD-3: twenty creations at one address at once make one session, and all return it", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const made = yield* Effect.forEach(
          Array.from({ length: 20 }, (_, index) => `title ${index}`),
          (title) => sessions.create({ location, title, placement: { address: at("race") } }),
          { concurrency: "unbounded" }
        )
        for (const session of made) assert.deepStrictEqual(session, made[0])
        assert.strictEqual((yield* sessions.list({ search: made[0]?.title ?? "" })).items.length, 1)
      })
    )

    it.effect("AD-7, AD-3: with an id, its session comes first; a new id at a taken address is AddressTaken", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const [taken, free] = [at("taken"), at("free")]
        const first = yield* sessions.create({ id: "ses_at_first", location, placement: { address: taken } })
        const same = yield* sessions.create({ id: "ses_at_first", location, placement: { address: free } })
        assert.deepStrictEqual(same, first)
        assert.isUndefined(yield* sessions.addressed(free))
        const refused = yield* Effect.flip(
          sessions.create({ id: "ses_at_second", location, placement: { address: taken } })
        )
        assert.deepInclude(refused, { _tag: "AddressTaken", address: "private/1000/agent/coder/taken" })
        assert.strictEqual((yield* Effect.flip(sessions.get(SessionID.make("ses_at_second"))))._tag, "SessionNotFound")
      })
    )

    it.effect(
      "AD-7, AD-3: creations of different ids at one address at once: one is made, the others are AddressTaken",
      () =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          const address = at("ids-race")
          const made = yield* Effect.forEach(
            Array.from({ length: 12 }, (_, index) => `ses_ids_${index % 4}`),
            (id) => Effect.either(sessions.create({ id, location, placement: { address } })),
            { concurrency: "unbounded" }
          )
          const winner = yield* sessions.addressed(address)
          for (const [index, one] of made.entries()) {
            const mine = winner?.id === `ses_ids_${index % 4}`
            assert.strictEqual(one._tag === "Right" ? one.right.id : one.left._tag, mine ? winner.id : "AddressTaken")
          }
          assert.strictEqual(made.filter(({ _tag }) => _tag === "Right").length, 3)
        })
    )

    it.effect("AD-3: an address is free again when its session was removed", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const options: CreateOptions = { location, placement: { address: at("removed") } }
        const first = yield* sessions.create(options)
        yield* sessions.remove(first.id)
        assert.isUndefined(yield* sessions.addressed(at("removed")))
        assert.notStrictEqual((yield* sessions.create(options)).id, first.id)
      })
    )

    it.effect("AD-6, FI-4: a root is kept in one way of writing, so that folders below it are shown from it on", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const roots = ["/srv/root/", "/srv//root", "/srv/./x/../root"]
        for (const [n, root] of roots.entries()) {
          const made = yield* sessions.create({ location, placement: { address: at(`spelled-${n}`), root } })
          assert.strictEqual(made.root, "/srv/root")
        }
      })
    )

    it.effect(
      "AD-4: a session without an address is placed once; its root may change, and what is the same stores nothing",
      () =>
        Effect.gen(function* () {
          const { id, sessions } = yield* scene()
          const address = at("placed")
          for (const root of [undefined, "/one", "/one", "/two", "/two"]) yield* sessions.place(id, { address, root })
          assert.deepStrictEqual(yield* eventTypes(id), [
            "session.created",
            "session.next.addressed",
            "session.next.addressed",
            "session.next.addressed"
          ])
          assert.strictEqual((yield* sessions.addressed(address))?.root, "/two")
          const moved = yield* Effect.flip(sessions.place(id, { address: at("placed-elsewhere") }))
          assert.deepInclude(moved, { _tag: "InvalidInput", field: "address" })
          assert.include(moved.message, "private/1000/agent/coder/placed")
          assert.deepStrictEqual((yield* sessions.get(id)).address, address)
        })
    )

    it.effect("AD-4: an address that another session has is AddressTaken, whoever comes at once", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const address = at("placed-race")
        const ids = yield* Effect.replicateEffect(
          Effect.map(newSession(), ({ id }) => id),
          8
        )
        const placed = yield* Effect.forEach(ids, (id) => Effect.either(sessions.place(id, { address })), {
          concurrency: "unbounded"
        })
        assert.strictEqual(placed.filter(({ _tag }) => _tag === "Right").length, 1)
        for (const one of placed) if (one._tag === "Left") assert.strictEqual(one.left._tag, "AddressTaken")
        const winner = ids[placed.findIndex(({ _tag }) => _tag === "Right")]
        assert.strictEqual((yield* sessions.addressed(address))?.id, winner)
        const late = yield* Effect.flip(sessions.place((yield* newSession()).id, { address }))
        assert.strictEqual(late._tag, "AddressTaken")
      })
    )

    it.effect("AD-4: of different addresses for one session at once it gets one, and keeps it", () =>
      Effect.gen(function* () {
        const { id, log, sessions } = yield* scene()
        const wanted = Array.from({ length: 8 }, (_, index) => at(`one-of-${index}`))
        const placed = yield* Effect.forEach(wanted, (address) => Effect.either(sessions.place(id, { address })), {
          concurrency: "unbounded"
        })
        assert.strictEqual(placed.filter(({ _tag }) => _tag === "Right").length, 1)
        assert.strictEqual(yield* log.latest(id), 1)
      })
    )

    const bad: ReadonlyArray<readonly [field: string, placement: NonNullable<CreateOptions["placement"]>]> = [
      ["address.session", { address: at("ses_chosen") }],
      ["address.session", { address: at("index") }],
      ["address.session", { address: at("../up") }],
      ["address.name", { address: at("a", "b/c") }],
      ["address.scope", { address: written("scope", "public") }],
      ["address.uid", { address: written("uid", -1) }],
      ["address.uid", { address: written("uid", "0") }],
      ["address.kind", { address: written("kind", "tool") }],
      ["root", { address: at("rooted"), root: "relative/folder" }],
      ["root", { address: at("rooted"), root: "" }],
      ["root", { address: at("rooted"), root: "/a\0b" }]
    ]
    it.effect.each(bad)(
      "AD-5, AD-6: a placement with a bad %s is refused, and nothing is stored: %j",
      ([field, placement]) =>
        Effect.gen(function* () {
          const [sessions, log] = [yield* Sessions, yield* EventLog]
          const { position } = yield* log.readFeed({ after: 0 })
          const { id } = yield* newSession()
          const created = yield* Effect.flip(sessions.create({ location, placement }))
          assert.deepInclude(created, { _tag: "InvalidInput", field: `placement.${field}` })
          const placed = yield* Effect.flip(sessions.place(id, placement))
          assert.deepInclude(placed, { _tag: "InvalidInput", field })
          const { events } = yield* log.readFeed({ after: position })
          assert.isTrue(events.every(({ type }) => type !== "session.next.addressed"))
        })
    )

    it.effect("4.4: placing a session that is not there says so", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const id = SessionID.make("ses_nowhere")
        assert.strictEqual((yield* Effect.flip(sessions.place(id, { address: at("nowhere") })))._tag, "SessionNotFound")
      })
    )
  })

  it.scopedLive("AD-3: two processes that create at one address at once make one session", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const [one, two] = [yield* open({ filename }), yield* open({ filename })]
      for (let round = 0; round < 5; round += 1) {
        const address = at(`shared-${round}`)
        const made = yield* Effect.forEach(
          Array.from({ length: 8 }, (_, index) => index),
          (index) =>
            Effect.flatMap(Sessions, (sessions) =>
              sessions.create({ location, title: `title ${index}`, placement: { address } })
            ).pipe(Effect.provide(index % 2 === 0 ? one : two)),
          { concurrency: "unbounded" }
        )
        for (const session of made) assert.deepStrictEqual(session, made[0])
      }
      const { items } = yield* Effect.flatMap(Sessions, (sessions) => sessions.list()).pipe(Effect.provide(one))
      assert.strictEqual(items.length, 5)
    })
  )
}
