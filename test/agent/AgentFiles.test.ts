import { execFileSync } from "node:child_process"
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FastCheck as fc, Layer, Logger } from "effect"
import { projectAgent } from "../../packages/core/src/agent/AgentDefinition.ts"
import * as Agents from "../../packages/core/src/agent/Agents.ts"
import type { AgentFilesOptions } from "../../packages/core/src/agent/Agents.ts"
import { plan as builtinPlan } from "../../packages/core/src/agent/BuiltinAgents.ts"
import { type Rule, type Verdict, verdictOf } from "../../packages/core/src/domain/Rule.ts"
import { temporaryFolder } from "../support/Database.ts"

const write = (path: string, text: string | Uint8Array = "") => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** A user's folder, a project with a subfolder, and the agents there. */
const bench = Effect.fnUntraced(function* (options: Partial<AgentFilesOptions> = {}) {
  const root = yield* temporaryFolder
  const [user, project] = [join(root, "user"), join(root, "project")]
  const location = { directory: join(project, "packages", "a") }
  mkdirSync(location.directory, { recursive: true })
  mkdirSync(join(project, ".git"))
  const warnings: Array<string> = []
  const logger = Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ logLevel, message }) => {
      if (logLevel.label === "WARN") warnings.push(String(message))
    })
  )
  const context = yield* Layer.build(Agents.layer({ userFolder: user, ...options }))
  const agents = Context.get(context, Agents.Agents)
  return {
    root,
    project,
    location,
    warnings,
    logged: Effect.provide(logger),
    agents,
    ofUser: (name: string, text?: string | Uint8Array) => write(join(user, "agents", name), text),
    ofProject: (name: string, text?: string | Uint8Array) => write(join(project, ".daybook", "agents", name), text),
    userFile: (name: string) => join(user, "agents", name),
    projectFile: (name: string) => join(project, ".daybook", "agents", name),
    names: Effect.map(agents.list(location), (list) => list.map(({ name }) => name)),
    problems: Effect.map(agents.problems(location), (list) => list.map(({ details, path }) => `${path}: ${details}`))
  }
})

describe("a user's files", () => {
  it.scoped("CF-45, CF-12: a file says all that an agent has; its body is the prompt, its name the agent's", () =>
    Effect.gen(function* () {
      const { agents, ofUser } = yield* bench()
      ofUser(
        "review.md",
        [
          "---",
          "description: Reads a change",
          "mode: subagent",
          "model: {providerID: ollama, id: 'qwen3:8b'}",
          "turn_limit: 7",
          "settings: {top_p: 0.5, top_k: 3, stop: [END], effort: high, headers: {X-A: b}, body: {seed: [1, {a: null}]}}",
          "enter_reminder: Now reviewing.",
          "leave_reminder: No longer reviewing.",
          "permissions: {edit: deny}",
          "---",
          "",
          "Read the change.",
          ""
        ].join("\n")
      )
      const { permissions, ...review } = yield* agents.get("review")
      assert.deepStrictEqual(review, {
        name: "review",
        description: "Reads a change",
        mode: "subagent",
        model: { providerID: "ollama", id: "qwen3:8b" },
        turnLimit: 7,
        settings: {
          topP: 0.5,
          topK: 3,
          stop: ["END"],
          effort: "high",
          headers: { "X-A": "b" },
          body: { seed: [1, { a: null }] }
        },
        enterReminder: "Now reviewing.",
        leaveReminder: "No longer reviewing.",
        prompt: "Read the change."
      })
      assert.strictEqual(verdictOf(permissions, "read", "x"), "allow")
      assert.strictEqual(verdictOf(permissions, "edit", "x"), "deny")
    })
  )

  it.scoped("CF-14: a file with a built-in agent's name changes that agent", () =>
    Effect.gen(function* () {
      const { agents, ofUser } = yield* bench()
      ofUser("plan.md", "---\nturn_limit: 40\npermissions: {bash: deny}\n---\n")
      const plan = yield* agents.get("plan")
      assert.strictEqual(plan.turnLimit, 40)
      assert.strictEqual(plan.prompt, builtinPlan.prompt)
      assert.strictEqual(verdictOf(plan.permissions, "edit", "x"), "deny")
      assert.strictEqual(verdictOf(plan.permissions, "bash", "x"), "deny")
      assert.strictEqual(verdictOf(plan.permissions, "read", "x"), "allow")
    })
  )

  it.scoped("CF-15: the host's agent comes before a file of its name, and of two files the first", () =>
    Effect.gen(function* () {
      const { agents, ofUser, problems, userFile } = yield* bench({ agents: [{ name: "mine", permissions: [] }] })
      ofUser("mine.md", "Not this one.")
      ofUser("a.md", "---\nname: twin\n---\nFirst")
      ofUser("b.md", "---\nname: twin\n---\nSecond")
      assert.deepStrictEqual(yield* agents.get("mine"), { name: "mine", permissions: [] })
      assert.strictEqual((yield* agents.get("twin")).prompt, "First")
      const found = yield* problems
      assert.strictEqual(found.length, 2)
      assert.isTrue(found[0]?.startsWith(`${userFile("b.md")}: agent "twin" already exists`))
      assert.isTrue(found[1]?.startsWith(`${userFile("mine.md")}: agent "mine" already exists`))
    })
  )

  it.scoped("CF-17: a broken file is said to be so where its agent is asked for, and the others work", () =>
    Effect.gen(function* () {
      const { agents, ofUser, problems, userFile } = yield* bench()
      ofUser("good.md", "Work.")
      ofUser("bad.md", "---\nmode: main\nturnLimit: 3\n---\nWork.")
      const { message } = yield* Effect.flip(agents.get("bad"))
      assert.include(message, `agent "bad" cannot be used: ${userFile("bad.md")}`)
      assert.match(message, /line 2, column 7: mode: expected primary, subagent or all, found "main"/)
      assert.match(message, /line 3, column \d+: turnLimit: there is no such key; did you mean "turn_limit"\?/)
      assert.strictEqual((yield* agents.get("good")).prompt, "Work.")
      assert.strictEqual((yield* problems).length, 1)
    })
  )

  it.scoped("CF-17: a broken file of the user is never answered with the built-in agent, which may do more", () =>
    Effect.gen(function* () {
      const { agents, location, names, ofProject, ofUser } = yield* bench()
      ofUser("build.md", "---\npermissions: {bash: denied}\n---\n")
      ofProject("helper.md", "Help.")
      for (const name of ["build", undefined]) {
        assert.match((yield* Effect.flip(agents.get(name, location))).message, /agent "build" cannot be used: .*bash/)
      }
      assert.match((yield* Effect.flip(agents.get("helper", location))).message, /"build", whose rules it starts from/)
      assert.deepStrictEqual(yield* names, ["plan"])
    })
  )

  it.scoped("CF-6: in the user's folder a link may lead anywhere", () =>
    Effect.gen(function* () {
      const { agents, ofUser, root, userFile } = yield* bench()
      ofUser("x.md")
      write(join(root, "elsewhere", "linked.md"), "From elsewhere.")
      symlinkSync(join(root, "elsewhere", "linked.md"), userFile("linked.md"))
      assert.strictEqual((yield* agents.get("linked")).prompt, "From elsewhere.")
    })
  )
})

describe("a project's files", () => {
  it.scoped("CF-6: they are found from any folder of the project, and only where a Location is given", () =>
    Effect.gen(function* () {
      const { agents, location, ofProject, project, root } = yield* bench()
      ofProject("helper.md", "Help.")
      assert.strictEqual((yield* agents.get("helper", location)).prompt, "Help.")
      assert.strictEqual((yield* agents.get("helper", { directory: project })).prompt, "Help.")
      assert.include((yield* Effect.flip(agents.get("helper"))).message, "there is no agent")
      assert.include((yield* Effect.flip(agents.get("helper", { directory: root }))).message, "there is no agent")
      assert.include((yield* Effect.flip(agents.get("helper", { directory: "/no/such" }))).message, "there is no agent")
    })
  )

  it.scoped(
    "CF-44, CF-6: without a .git the Location's own folder is the project; projectConfig false leaves it alone",
    () =>
      Effect.gen(function* () {
        const { ofProject, location, names, root } = yield* bench({ projectConfig: false })
        ofProject("helper.md", "Help.")
        assert.deepStrictEqual(yield* names, ["build", "plan"])
        const { agents } = yield* bench()
        write(join(root, "plain", ".daybook", "agents", "here.md"), "Here.")
        assert.strictEqual((yield* agents.get("here", { directory: join(root, "plain") })).prompt, "Here.")
        assert.notStrictEqual(location.directory, root)
      })
  )

  it.scoped("CF-47, CF-16: what a project asks for beyond restrictions is ignored, reported and logged once", () =>
    Effect.gen(function* () {
      const { agents, location, logged, ofProject, problems, projectFile, warnings } = yield* bench()
      ofProject(
        "helper.md",
        "---\npermissions: {bash: allow, '*': allow, read: {'*.pem': deny}}\nturn_limit: 900\nbash: live\n" +
          "settings: {temperature: 0, headers: {X: y}, body: {a: 1}}\n---\nHelp."
      )
      const helper = yield* agents.get("helper", location).pipe(logged)
      yield* agents.get("helper", location).pipe(logged)
      assert.isUndefined(verdictOf(helper.permissions, "bash", "ls"))
      assert.isUndefined(verdictOf(helper.permissions, "edit", "x"))
      assert.strictEqual(verdictOf(helper.permissions, "read", "a.pem"), "deny")
      assert.strictEqual(verdictOf(helper.permissions, "read", "a.txt"), "allow")
      assert.strictEqual(helper.turnLimit, 25)
      assert.deepStrictEqual(helper.settings, { temperature: 0 })
      const expected = [
        "rules that allow are ignored",
        "settings.headers and settings.body are ignored",
        "turn_limit is 25",
        "bash: live is ignored"
      ]
      const found = yield* problems
      for (const [index, text] of expected.entries()) {
        assert.include(found[index] ?? "", `${projectFile("helper.md")}: ${text}`)
        assert.include(warnings[index] ?? "", text)
      }
      assert.deepStrictEqual([found.length, warnings.length], [4, 4])
      assert.isUndefined(helper.bash)
    })
  )

  it.scoped("CF-15: a project replaces no agent from above, not even one whose file is broken", () =>
    Effect.gen(function* () {
      const { agents, location, ofProject, ofUser, problems } = yield* bench()
      ofUser("mine.md", "Mine.")
      ofUser("broken.md", "---\nmode: 1\n---\n")
      for (const name of ["build", "plan", "mine", "broken"]) ofProject(`${name}.md`, "Theirs.")
      ofProject("innocent.md", "---\nname: build\n---\nTheirs.")
      assert.strictEqual((yield* agents.get("build", location)).prompt, undefined)
      assert.strictEqual((yield* agents.get("plan", location)).prompt, builtinPlan.prompt)
      assert.strictEqual((yield* agents.get("mine", location)).prompt, "Mine.")
      assert.match((yield* Effect.flip(agents.get("broken", location))).message, /user.*mode/)
      assert.strictEqual((yield* problems).filter((line) => line.includes("a project cannot change it")).length, 5)
    })
  )

  const verdicts = fc.constantFrom<Verdict>("allow", "ask", "deny")
  const rules = fc.array(
    fc.record<Rule>({
      permission: fc.constantFrom("read", "edit", "*"),
      resource: fc.constantFrom("*", "a*", "ab", "*b"),
      verdict: verdicts
    }),
    { maxLength: 6 }
  )
  const strict = (verdict: Verdict | undefined) => ({ allow: 0, ask: 1, deny: 2 })[verdict ?? "ask"]

  it.prop(
    "CF-16: whatever a project's rules are, they never allow more than the user's",
    [rules, rules],
    ([users, theirs]) => {
      const from = { name: "build", permissions: users }
      const { agent } = projectAgent(from, { name: "helper", definition: { permissions: theirs } }, 25)
      for (const permission of ["read", "edit", "bash"]) {
        for (const resource of ["a", "ab", "b", "c"]) {
          const [own, given] = [users, agent.permissions].map((each) => strict(verdictOf(each, permission, resource)))
          assert.isAtLeast(given ?? -1, own ?? 3)
          // And what the project denies last is denied.
          if (verdictOf(theirs, permission, resource) === "deny") assert.strictEqual(given, 2)
        }
      }
    }
  )
})

describe("hostile files", () => {
  it.scoped(
    "CF-1: what is no small regular text file of the project is left out with the reason, and never waited for",
    () =>
      Effect.gen(function* () {
        const { names, ofProject, problems, project, projectFile, root } = yield* bench()
        ofProject("good.md", "Good.")
        write(join(root, "secret.md"), "SECRET")
        write(join(root, "outside", "inner.md"), "SECRET")
        write(join(project, "docs", "inside.md"), "Inside.")
        symlinkSync(join(root, "secret.md"), projectFile("escape.md"))
        symlinkSync("../../docs/inside.md", projectFile("inside.md"))
        symlinkSync("loop.md", projectFile("loop.md"))
        symlinkSync("nowhere.md", projectFile("dangling.md"))
        symlinkSync("/dev/zero", projectFile("device.md"))
        mkdirSync(projectFile("folder.md"))
        execFileSync("mkfifo", [projectFile("pipe.md")])
        ofProject("large.md", "x".repeat(64 * 1024 + 1))
        ofProject("just.md", "x".repeat(64 * 1024))
        ofProject("latin.md", Buffer.from([0x63, 0x61, 0x66, 0xe9]))
        ofProject("nul.md", "a\0b")
        ofProject("bomb.md", `---\na: ${"[".repeat(60_000)}\n---\n`)
        ofProject("keys.md", `---\n${Array.from({ length: 8_000 }, (_, index) => `k${index}:`).join("\n")}\n---\n`)
        ofProject("bad name.md", "x")
        ofProject(".hidden.md", "x")
        ofProject("notes.txt", "x")
        assert.sameMembers([...(yield* names)], ["build", "plan", "good", "inside", "just"])
        const found = yield* problems
        const expected: Readonly<Record<string, RegExp>> = {
          "escape.md": /leads out of its project/,
          "loop.md": /loop of symbolic links/,
          "dangling.md": /does not exist/,
          "device.md": /leads out of its project/,
          "folder.md": /it is a folder/,
          "pipe.md": /not a regular file/,
          "large.md": /larger than 65,536 bytes/,
          "latin.md": /not UTF-8/,
          "nul.md": /NUL/,
          "bomb.md": /nested too deeply/,
          "keys.md": /too many keys/,
          "bad name.md": /expected a name.*rename the file/
        }
        for (const [name, reason] of Object.entries(expected)) {
          assert.match(found.find((line) => line.startsWith(`${projectFile(name)}: `)) ?? `${name} is missing`, reason)
        }
        assert.strictEqual(found.length, Object.keys(expected).length)
        assert.notInclude(found.join(), "SECRET")
      })
  )

  it.scoped("CF-6: a folder of agents that leads out of the project is refused whole", () =>
    Effect.gen(function* () {
      const { names, problems, project, root } = yield* bench()
      write(join(root, "outside", "inner.md"), "SECRET")
      mkdirSync(join(project, ".daybook"))
      symlinkSync(join(root, "outside"), join(project, ".daybook", "agents"))
      assert.deepStrictEqual(yield* names, ["build", "plan"])
      assert.match((yield* problems).join(), /\.daybook\/agents: it leads out of its project/)
    })
  )

  it.scoped("CF-5: a folder of agents that is a file, or has very many files, is reported", () =>
    Effect.gen(function* () {
      const one = yield* bench()
      write(join(one.project, ".daybook", "agents"), "a file")
      assert.deepStrictEqual(yield* one.names, ["build", "plan"])
      const other = yield* bench()
      for (let index = 0; index < 205; index++) other.ofProject(`a${String(index).padStart(3, "0")}.md`, "x")
      const names = yield* other.names
      assert.strictEqual(names.length, 202)
      assert.strictEqual(names.at(-1), "a199")
      assert.match((yield* other.problems).join(), /more than 200 definition files/)
    })
  )
})

describe("changes", () => {
  it.scoped("CF-5: a file that is new, changed, replaced or gone is seen at the next look", () =>
    Effect.gen(function* () {
      const { agents, location, ofProject, projectFile } = yield* bench()
      const prompt = Effect.map(agents.get("a", location), (agent) => agent.prompt)
      assert.include((yield* Effect.flip(agents.get("a", location))).message, "there is no agent")
      ofProject("a.md", "One")
      assert.strictEqual(yield* prompt, "One")
      appendFileSync(projectFile("a.md"), " more")
      assert.strictEqual(yield* prompt, "One more")
      // Another file of the same size and times.
      ofProject("b.txt", "Two more")
      utimesSync(projectFile("a.md"), 1_000, 1_000)
      assert.strictEqual(yield* prompt, "One more")
      utimesSync(projectFile("b.txt"), 1_000, 1_000)
      renameSync(projectFile("b.txt"), projectFile("a.md"))
      assert.strictEqual(yield* prompt, "Two more")
      rmSync(projectFile("a.md"))
      assert.include((yield* Effect.flip(agents.get("a", location))).message, "there is no agent")
    })
  )

  it.scoped("CF-5: a file that did not change is not read again", () =>
    Effect.gen(function* () {
      const { agents, location, ofProject, projectFile } = yield* bench()
      ofProject("a.md", "---\npermissions: {edit: deny}\n---\nOne")
      const before = yield* agents.get("a", location)
      const after = yield* agents.get("a", location)
      // The same text out of the same parse: what is read anew has new values.
      assert.strictEqual(after.permissions.at(-1), before.permissions.at(-1))
      chmodSync(projectFile("a.md"), 0o600)
      assert.notStrictEqual((yield* agents.get("a", location)).permissions.at(-1), before.permissions.at(-1))
    })
  )
})
