/** What a prompt mentions by a name: agents, references, templates, and resources of MCP servers. */
import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { obedient } from "../mcp/support/Servers.ts"
import { kinds, makeDesk, png, textOf } from "./support/Expanding.ts"

const allow = (permission: string) => ({ permission, resource: "*", verdict: "allow" as const })
const deny = (permission: string, resource = "*") => ({ permission, resource, verdict: "deny" as const })

const agents = [
  { name: "reviewer", description: "Reads code closely.", permissions: [] },
  { name: "leader", mode: "primary" as const, permissions: [] },
  { name: "lonely", permissions: [allow("read"), deny("task")] },
  { name: "picky", permissions: [allow("read"), allow("task"), deny("task", "reviewer")] },
  { name: "docs", permissions: [] }
]

describe("PX-17: agents", () => {
  it.scoped("a mentioned agent is words that hand it the work, where the session's agent may use `task`", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk(() => ({ agents }))
      const [part] = yield* desk.parts("let @reviewer look at it")
      assert.deepStrictEqual([part?.kind, part?.name], ["agent", "reviewer"])
      assert.include(textOf(part), `the tool "task"`)
      assert.include(textOf(part), "Reads code closely.")
      assert.deepStrictEqual(part?.source, { start: 4, end: 13, text: "@reviewer" })
    })
  )

  it.scoped("where it may not, or the agent takes no tasks, that is said", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk(() => ({ agents }))
      for (const agent of ["lonely", "picky", "plan"]) {
        const [part] = yield* desk.parts("@reviewer", agent)
        assert.deepStrictEqual([part?.kind, part?.name], ["failure", "reviewer"], agent)
        assert.include(textOf(part), `rules of agent "${agent}"`)
      }
      assert.deepStrictEqual(kinds(yield* desk.parts("@docs", "picky")), ["agent docs"])
      const [part] = yield* desk.parts("@leader")
      assert.include(textOf(part), "takes no tasks")
    })
  )

  it.scoped("one given by name is looked up exactly, and is there once", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk(() => ({ agents }))
      const parts = yield* desk.parts({ text: "@reviewer", agents: [{ name: "reviewer" }, { name: "nobody" }] })
      assert.deepStrictEqual(kinds(parts), ["agent reviewer", "failure nobody"])
    })
  )
})

it.scoped("PX-3: an agent comes before a reference, that before a file", () =>
  Effect.gen(function* () {
    const desk = yield* makeDesk(({ outside }) => ({ agents, references: { docs: outside, notes: outside } }))
    desk.write("docs", "a file")
    desk.write("notes", "a file")
    assert.deepStrictEqual(kinds(yield* desk.parts("@docs @notes @./notes")), [
      "agent docs",
      "reference notes",
      "file notes"
    ])
  })
)

describe("PX-20: references", () => {
  it.scoped("a reference is its description and listing; a path in it is read there, by either name", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk(({ outside }) => ({
        references: {
          manual: { path: outside, description: "How the machine works." },
          page: join(outside, "a/one.md")
        }
      }))
      desk.writeOutside("a/one.md", "# One\n")
      desk.writeOutside("pic.png", png)
      const parts = yield* desk.parts("@manual @manual/a/one.md @manual:a/one.md @manual/pic.png @manual/a @page")
      assert.deepStrictEqual(kinds(parts), [
        "reference manual",
        "file manual:a/one.md",
        "media manual:pic.png",
        "directory manual:a",
        "reference page",
        "file page:."
      ])
      assert.include(textOf(parts[0]), "How the machine works.")
      assert.include(textOf(parts[0]), "a/\npic.png\n")
      assert.include(textOf(parts[0]), `"manual:<name>"`)
      assert.notInclude(JSON.stringify(parts), desk.outside)
    })
  )

  it.scoped("a relative one starts at the project's root, from wherever in it the session works", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk(() => ({ references: { lib: "vendor/lib" } }))
      desk.write("vendor/lib/x.txt", "x")
      mkdirSync(join(desk.project, "deep/down"), { recursive: true })
      const expansion = yield* Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id } = yield* sessions.create({ location: { directory: join(desk.project, "deep/down") } })
        return (yield* sessions.prompt({ sessionID: id, prompt: { text: "@lib/x.txt" }, resume: false })).prompt
          .expansion
      }).pipe(Effect.provide(desk.runtime))
      assert.deepStrictEqual(kinds(expansion?.parts ?? []), ["file lib:x.txt"])
    })
  )

  it.scoped("nothing leads out of it, a rule on `name:path` denies it, and one that is not there says so", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk(({ outside, project }) => ({
        agents: [{ name: "careful", permissions: [allow("read"), deny("read", "manual:private/*")] }],
        references: { manual: join(outside, "manual"), gone: join(project, "no/such") }
      }))
      desk.writeOutside("manual/private/key.md", "SECRET")
      desk.writeOutside("other.md", "SECRET")
      symlinkSync(join(desk.outside, "other.md"), join(desk.outside, "manual/link.md"))
      const names = [
        "manual/../other.md",
        "manual:../other.md",
        "manual/link.md",
        "manual:/etc/hostname",
        "manual/private/key.md",
        "gone",
        "gone/x"
      ]
      for (const name of names) {
        const [part] = yield* desk.parts(`@${name}`, "careful")
        assert.strictEqual(part?.kind, "failure", name)
        assert.notInclude(JSON.stringify(part), "SECRET", name)
        assert.notInclude(textOf(part), desk.outside, name)
      }
      const parts = yield* desk.parts({ text: "", references: [{ name: "manual" }, { name: "nothing" }] })
      assert.deepStrictEqual(kinds(parts), ["reference manual", "failure nothing"])
    })
  )
})

describe("PX-6: templates", () => {
  it.scoped("`/name` becomes the template's text with its arguments, and that text's mentions are resolved", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk(() => ({ templates: [{ name: "review", body: "Review $1 against @rules.md" }] }))
      desk.write("rules.md", "be kind")
      desk.write("a.ts", "code")
      desk.write(".daybook/templates/own.md", "From the project: $ARGUMENTS")
      const review = yield* desk.expand("/review @a.ts now")
      assert.strictEqual(review?.text, "Review @a.ts against @rules.md")
      assert.deepStrictEqual(kinds(review?.parts ?? []), ["file a.ts", "file rules.md"])
      assert.deepStrictEqual(yield* desk.expand("/own x  y"), { text: "From the project: x  y", parts: [] })
    })
  )

  it.scoped("PX-25, PX-10: where the rules ask, what only the template mentions is not the person's to approve", () =>
    Effect.gen(function* () {
      const ask = (resource: string) => ({ permission: "read", resource, verdict: "ask" as const })
      const desk = yield* makeDesk(() => ({
        agents: [{ name: "careful", permissions: [allow("read"), ask("*.env")] }]
      }))
      desk.write("own.env", "MINE")
      desk.write("other.env", "OTHER")
      desk.write(".daybook/templates/check.md", "Look at $1 and @other.env and @rules.md")
      desk.write("rules.md", "be kind")
      const parts = yield* desk.parts("/check @own.env", "careful")
      assert.deepStrictEqual(kinds(parts), ["file own.env", "failure other.env", "file rules.md"])
      assert.notInclude(JSON.stringify(parts), "OTHER")
    })
  )

  it.scoped("anything else after a slash stays as it is; a template that cannot be used says why", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk(() => ({ templates: [{ name: "vast", body: "$1".repeat(1_000) }] }))
      desk.write(".daybook/templates/broken.md", "---\nname: [\n---\ntext")
      for (const text of ["/etc/hosts is a file", "/unknown words", " /vast x", "/", "//vast", "use /vast"]) {
        assert.isUndefined(yield* desk.expand(text), text)
      }
      const broken = yield* desk.expand("/broken now")
      assert.isUndefined(broken?.text)
      assert.deepStrictEqual(kinds(broken?.parts ?? []), ["failure /broken"])
      assert.notInclude(textOf(broken?.parts[0]), desk.project)
      const vast = yield* desk.expand(`/vast ${"y".repeat(2_000)}`)
      assert.isUndefined(vast?.text)
      assert.include(textOf(vast?.parts[0]), "characters")
    })
  )
})

it.scoped("PX-18: a resource of an MCP server is its contents, or why there are none", () =>
  Effect.gen(function* () {
    const desk = yield* makeDesk(() => ({
      mcp: { own: obedient, missing: { command: "no-such-command" } },
      agents: [{ name: "strict", permissions: [deny("read", "own:*")] }]
    }))
    const parts = yield* desk.parts("@own:test://text and @own:test://nothing and @missing:x://y and @nobody:x://y")
    assert.deepStrictEqual(kinds(parts), [
      "resource own:test://text",
      "resource own:test://text",
      "failure own:test://nothing",
      "failure missing:x://y",
      "failure nobody:x://y"
    ])
    assert.strictEqual(textOf(parts[0]), "one")
    const given = yield* desk.parts({ text: "", files: [{ uri: "mcp:own:test://text", mime: "text/plain" }] })
    assert.strictEqual(textOf(given[0]), "one")
    assert.deepStrictEqual(kinds(yield* desk.parts("@own:test://text", "strict")), ["failure own:test://text"])
  })
)

it.scoped("PX-25, PX-10: the prompt of a task approves of nothing: where the rules ask, nothing is read", () =>
  Effect.gen(function* () {
    const ask = { permission: "read", resource: "secret.txt", verdict: "ask" as const }
    const desk = yield* makeDesk(() => ({ agents: [{ name: "asking", permissions: [allow("read"), ask] }] }))
    desk.write("secret.txt", "SECRET")
    desk.write("open.txt", "open")
    const expansion = yield* Effect.gen(function* () {
      const sessions = yield* Sessions
      const parent = yield* desk.session("asking")
      const location = { directory: desk.project }
      const child = yield* sessions.create({ location, agent: "asking", parentID: parent.id })
      const prompt = { text: "@secret.txt @open.txt" }
      return (yield* sessions.prompt({ sessionID: child.id, prompt, resume: false })).prompt.expansion
    }).pipe(Effect.provide(desk.runtime))
    assert.deepStrictEqual(kinds(expansion?.parts ?? []), ["failure secret.txt", "file open.txt"])
    assert.deepStrictEqual(kinds(yield* desk.parts("@secret.txt", "asking")), ["file secret.txt"])
  })
)
