/** The guard of real parts, and what the end of a run says of absent parts and of slow tests. */
import { assert, it } from "@effect/vitest"
import { absentText } from "../support/AbsentParts.ts"
import { guardOf, type Part } from "../support/Parts.ts"
import { slowText } from "../support/SlowTests.ts"

const part = (name: string, works: () => boolean, needs: ReadonlyArray<string> = []): Part => ({
  name,
  works,
  get: `apt-get install ${name}`,
  needs
})

const never = () => false
const always = () => true

it("PA-21: an absent part is noted, and is not there for the suites that need it", () => {
  const noted: Array<Part> = []
  const bwrap = part("bubblewrap", never)
  const lacks = guardOf({ bwrap, node: part("node", always) }, { required: false, note: (each) => noted.push(each) })
  assert.deepStrictEqual([lacks("bwrap"), lacks("node")], [true, false])
  assert.deepStrictEqual(noted, [bwrap])
})

it("PA-21: a part is run once, however many suites need it", () => {
  let runs = 0
  const lacks = guardOf({ bwrap: part("bubblewrap", () => ++runs > 1) }, { required: false, note: () => {} })
  assert.deepStrictEqual([lacks("bwrap"), lacks("bwrap"), runs], [true, true, 1])
})

it("PA-21: where the part that a part needs is absent, that one is named and the other is not run", () => {
  const noted: Array<Part> = []
  const root = part("root", never)
  const sshd = part("sshd", () => assert.fail("it was run"), ["root"])
  const lacks = guardOf({ root, sshd }, { required: false, note: (each) => noted.push(each) })
  assert.isTrue(lacks("sshd"))
  assert.deepStrictEqual(noted, [root])
})

it("PA-23: where every part is required, an absent one is an error that names it and says how to get it", () => {
  const lacks = guardOf(
    { bwrap: part("bubblewrap", never) },
    { required: true, note: () => assert.fail("it is noted") }
  )
  assert.throws(() => lacks("bwrap"), "these tests need bubblewrap: apt-get install bubblewrap")
})

it("PA-21: the end of a run names each absent part once, with how to get it and its suites", () => {
  const needs = (file: string, name: string) => ({ file, part: name, get: `apt-get install ${name}` })
  const absences = [
    needs("sandbox/Sandbox.test.ts", "bubblewrap"),
    needs("sandbox/Sandbox.test.ts", "bubblewrap"),
    needs("cli/Mcp.process.world.test.ts", "bubblewrap"),
    needs("watch/Page.browser.world.test.ts", "chromium")
  ]
  assert.strictEqual(
    absentText(absences),
    `
Not run, or not as a whole, because this machine lacks a part:
 2 suites need bubblewrap: apt-get install bubblewrap
   cli/Mcp.process, sandbox/Sandbox
 1 suite needs chromium: apt-get install chromium
   watch/Page.browser
`
  )
  assert.isUndefined(absentText([]))
})

it("PA-24: on a quiet machine each test of more than two seconds is named, the slowest first", () => {
  const tests = [
    { name: "a.test.ts: quick", millis: 2_000 },
    { name: "b.test.ts: slow", millis: 2_100 },
    { name: "c.test.ts: slower", millis: 11_950 }
  ]
  assert.strictEqual(
    slowText(tests),
    "\nTests of more than 2 seconds:\n  11.9 s  c.test.ts: slower\n  2.1 s  b.test.ts: slow\n"
  )
  assert.isUndefined(slowText(tests.slice(0, 1)))
})
