/** Where sessions lie, and how folders and times are written. */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc, Schema } from "effect"
import { addressOf, cwdHash, indexFolder, nameFrom, sessionFolder } from "../../packages/files/src/layout/Layout.ts"
import { type Address, isName, SessionName } from "../../packages/log/src/domain/Address.ts"
import { agentDirectory, runOf, timeText } from "../../packages/transcript/src/row/Rows.ts"
import { forAll } from "../support/Cases.ts"

const agent = { kind: "agent", name: "coder", session: "default" } as const
const model = { kind: "model", name: "qwen3", session: "s.1" } as const

it("FL-1: each scope and kind has its folder, and its index beside the sessions", () => {
  const cases = [
    [{ scope: "private", uid: 1000, ...agent }, "home/1000/agent/coder/session/"],
    [{ scope: "private", uid: 0, ...model }, "home/0/model/qwen3.d/session/"],
    [{ scope: "shared", shared: "team", ...agent }, "shared/team/agent/coder/session/"],
    [{ scope: "shared", shared: "team", ...model }, "shared/team/model/qwen3.d/session/"]
  ] as const
  for (const [address, house] of cases) {
    assert.strictEqual(sessionFolder(address), house + address.session)
    assert.strictEqual(indexFolder(address), `${house}index`)
  }
})

it("SC-2: a temp session is kept nowhere", () => {
  assert.isUndefined(addressOf({ id: "ses_1" }, { scope: "temp", uid: 1, ...agent }, 1000))
})

it("FI-1: a session that was given an address is kept there, whatever its id and agent", () => {
  const given: Address = { scope: "shared", shared: "team", ...agent }
  assert.deepStrictEqual(addressOf({ id: "ses_1", agent: "plan" }, given, 1000), given)
})

it("FI-101, FI-1: a session without an address is kept under its id and the agent that it was created for", () => {
  const base = { scope: "private", uid: 1000, kind: "agent" } as const
  assert.deepStrictEqual(addressOf({ id: "ses_1" }, undefined, 1000), { ...base, name: "build", session: "ses_1" })
  const odd = addressOf({ id: "ses_1", agent: "my agent/Ä.sock" }, undefined, 1000)
  assert.deepStrictEqual(odd, { ...base, name: "my-agent---sock", session: "ses_1" })
})

it("FI-1: an id that is no name is stood for by its hash", () => {
  const names = [`ses_${"a".repeat(61)}`, "ses_x.sock", "ses_x.d"].map(
    (id) => addressOf({ id }, undefined, 1)?.session ?? ""
  )
  for (const name of names) assert.match(name, /^ses_[0-9a-f]{60}$/)
  assert.strictEqual(new Set(names).size, 3)
  assert.strictEqual(addressOf({ id: `ses_${"a".repeat(60)}` }, undefined, 1)?.session, `ses_${"a".repeat(60)}`)
})

it("NA-1: whatever an agent and a session are called, their names are names", () =>
  forAll([fc.oneof(fc.string({ minLength: 1 }), fc.string({ minLength: 60, maxLength: 70 }))], 40, (text) => {
    assert.isTrue(isName(nameFrom(text)))
    if (isName(text)) assert.strictEqual(nameFrom(text), text)
    const address = addressOf({ id: `ses_${text}`, agent: text }, undefined, 1)
    assert.isTrue(Schema.is(SessionName)(address?.session))
  }))

it("NA-1: a name made of another ends in no suffix of a socket or a folder, even once it is cut", () => {
  assert.strictEqual(nameFrom("a.sock"), "a-sock")
  assert.strictEqual(nameFrom("..d"), "x.-d")
  assert.isTrue(isName(nameFrom(`${"a".repeat(59)}.sockets`)))
  assert.isTrue(isName(nameFrom(`${"a".repeat(62)}.data`)))
})

it("CW-3: a folder is shown below the session's root, and only there", () => {
  const cases = [
    [undefined, "/work", "/work"],
    ["/root", "/root", "/"],
    ["/root", "/root/a/b", "/a/b"],
    ["/root", "/rooted", "/rooted"],
    ["/root", "/", "/"],
    ["/", "/a", "/a"]
  ] as const
  for (const [root, directory, shown] of cases) assert.strictEqual(agentDirectory(root, directory), shown)
})

it("DC-5: a folder's hash is SHA-256 over its text alone", () => {
  assert.strictEqual(cwdHash("/work"), "0c9a453fad615c83c57d57c2b2be05fa938f0791d7624db43827a033227bf78b")
})

it("FR-9: a run's name is made of the session and what it began with", () => {
  assert.match(runOf("ses_a", "msg_1"), /^ctx-[0-9a-f]{32}$/)
  assert.strictEqual(runOf("ses_a", "msg_1"), "ctx-b22d5c71298954c51c07efc1dc88dffa")
  assert.notStrictEqual(runOf("ses_a", "msg_1"), runOf("ses_b", "msg_1"))
})

it("DC-4: times have milliseconds and sort as text, whatever a clock said", () => {
  assert.strictEqual(timeText(1_769_846_709_120), "2026-01-31T08:05:09.120Z")
  forAll([fc.oneof(fc.integer(), fc.maxSafeInteger()), fc.maxSafeInteger()], 40, (a, b) => {
    assert.match(timeText(a), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    if (a <= b) assert.isTrue(timeText(a) <= timeText(b))
  })
})
