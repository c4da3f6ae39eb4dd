/** The verbs of the tree, as processes on one database: CL-210 to CL-216. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "./support/Bundle.ts"
import { jsonLines, place } from "./support/Process.ts"

beforeAll(() => void build())

describe("branches", () => {
  it.scopedLive(
    "CL-211, CL-212, CL-213, CL-214, CL-216, CL-830: tree shows what branch, label and fork did; the next prompt follows the branch",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        yield* here.run(["prompt", "--session", "fix", "say one"])
        yield* here.run(["prompt", "--session", "fix", "say two"])
        const nodes = jsonLines((yield* here.run(["tree", "fix", "--json"])).stdout)
        assert.deepStrictEqual(
          nodes.map(({ onPath, parentID, type }) => [type, parentID, onPath]),
          nodes.map(({ type }, at) => [type, nodes[at - 1]?.["id"], true])
        )
        const answers = nodes.filter(({ type }) => type === "assistant").map(({ id }) => String(id))
        const [first = ""] = answers
        yield* here.run(["label", "fix", first.slice(-8), "good", "start"])
        const branched = yield* here.run(["branch", "fix", "good start"])
        assert.deepStrictEqual([branched.code, branched.stdout], [0, ""])
        assert.match(branched.stderr, /^"fix" goes on after ".*", the answer to "say one"\n$/)
        assert.include((yield* here.run(["branch", "fix", "good start"])).stderr, "nothing changed")
        yield* here.run(["prompt", "--session", "fix", "say three"])
        const lines = (yield* here.run(["tree", "fix"])).stdout.trimEnd().split("\n")
        const line = (text: string) => lines.find((each) => each.includes(text)) ?? ""
        assert.match(line("say one"), /^\* +\d+ {2}user/)
        assert.match(line("[good start]"), /^\* /)
        assert.match(line("say two"), /^\|- o +\d+ {2}user/)
        assert.match(line("say three"), /^\* +\d+ {2}user/)
        assert.match(lines.at(-1) ?? "", /^\* .*<- history continues here$/)
        assert.isBelow(lines.indexOf(line("say two")), lines.indexOf(line("say three")))

        const prompt = nodes.find(({ text }) => text === "say two")?.["id"]
        const edited = yield* here.run(["branch", "fix", String(prompt), "--json"])
        assert.deepInclude(JSON.parse(edited.stdout), { moved: true, leafID: first, prompt: { text: "say two" } })

        const forked = yield* here.run(["fork", "fix", "good start", "--title", "other"])
        assert.match(forked.stdout, /^ses_\S+\n$/)
        const copy = yield* here.run(["show", "other"])
        assert.include(copy.stdout, "say one")
        assert.notInclude(copy.stdout, "say two")
      }),
    120_000
  )

  it.scopedLive(
    "CL-210: an unknown message is exit code 3, and part of several ids is exit code 2 that lists them",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        yield* here.run(["prompt", "--session", "fix", "say one"])
        const unknown = yield* here.run(["branch", "fix", "nowhere"])
        assert.strictEqual(unknown.code, 3)
        assert.match(unknown.stderr, /has no message or label "nowhere"; daybook tree ses_\S+ lists its messages/)
        const several = yield* here.run(["label", "fix", "msg_", "x"])
        assert.strictEqual(several.code, 2)
        assert.match(several.stderr, /is more than one message: msg_\S+, msg_\S+/)
      })
  )
})
