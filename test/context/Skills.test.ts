/** Skills: which are found, which an agent is told of, and what the tool gives (CX-29, CX-44..CX-47). */
import { symlinkSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Logger, Struct } from "effect"
import * as SystemContext from "../../packages/core/src/context/SystemContext.ts"
import * as Skills from "../../packages/core/src/context/Skills.ts"
import type { Rule } from "../../packages/core/src/domain/Rule.ts"
import * as Permission from "../../packages/core/src/permission/Permission.ts"
import { layerHeadless } from "../../packages/core/src/permission/PermissionAsker.ts"
import { CurrentLocation } from "../../packages/log/src/domain/Values.ts"
import { makeSkill } from "../../packages/tools/src/Skill.ts"
import { approvals } from "../support/Approvals.ts"
import { callBy, textOf } from "../tools/Workbench.ts"
import { folder, listener, put, registryAt } from "./support/Look.ts"

const skill = (description: string, body: string, name?: string) =>
  `---\n${name === undefined ? "" : `name: ${name}\n`}description: ${description}\n---\n${body}\n`

const allowed: ReadonlyArray<Rule> = [{ permission: "skill", resource: "*", verdict: "allow" }]

/** Puts what is logged into a list. */
const recording = (warnings: Array<string>) =>
  Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ message }) => void warnings.push(String(message)))
  )

const skillsAt = Effect.fnUntraced(function* (directory: string, options: SystemContext.Options = {}) {
  const layer = Skills.layer.pipe(
    Layer.provide([SystemContext.layerContextSettings(options), Layer.succeed(CurrentLocation, { directory })])
  )
  return Context.get(yield* Layer.build(layer), Skills.Skills)
})

/** The tool at a folder. */
const toolAt = Effect.fnUntraced(function* (directory: string, permissions: ReadonlyArray<Rule> = allowed) {
  const skills = yield* skillsAt(directory)
  const tool = yield* makeSkill.pipe(
    Effect.provideService(Skills.Skills, skills),
    Effect.provide(Permission.layer),
    Effect.provide([layerHeadless, approvals, Layer.succeed(CurrentLocation, { directory })])
  )
  return (name: string) => tool.execute({ name }, callBy({ name: "build", permissions }, directory))
})

describe("which there are", () => {
  it.scoped(
    "CX-50, CX-44: of one name a configured skill counts more than the user's, and both more than the project's",
    () => {
      const warnings: Array<string> = []
      return Effect.gen(function* () {
        const [here, user, shared] = [yield* folder, yield* folder, yield* folder]
        for (const name of ["a", "b"]) yield* put(join(user, "skills", name, "SKILL.md"), skill("user", "User."))
        for (const name of ["b", "c"]) yield* put(join(shared, name, "SKILL.md"), skill("shared", "Shared."))
        const at = (name: string) => join(here, ".daybook", "skills", name)
        yield* put(join(at("other"), "SKILL.md"), skill("project", "Project.", "a"))
        for (const name of ["c", "d"]) yield* put(join(at(name), "SKILL.md"), skill("project", "Project."))
        const { list } = yield* skillsAt(here, { userFolder: user, skills: [shared] })
        for (const _ of [1, 2]) {
          assert.deepStrictEqual(
            (yield* list).map(({ description, name }) => [name, description]),
            [
              ["a", "user"],
              ["b", "shared"],
              ["c", "shared"],
              ["d", "project"]
            ]
          )
        }
        const rest = "already exists, and a project cannot change it; choose another name"
        assert.sameMembers(warnings, [
          `the skill ${at("other")} is ignored: skill "a" ${rest}`,
          `the skill ${at("c")} is ignored: skill "c" ${rest}`
        ])
      }).pipe(Effect.provide(recording(warnings)))
    }
  )

  it.scoped("CX-45: what is malformed or leads out of the project is left out, and the others are not", () =>
    Effect.gen(function* () {
      const [here, outside] = [yield* folder, yield* folder]
      const at = (name: string) => join(here, ".daybook", "skills", name)
      yield* put(join(at("good"), "SKILL.md"), skill("of use", "Do."))
      yield* put(join(at("none"), "SKILL.md"), "No front matter.")
      yield* put(join(at("open"), "SKILL.md"), "---\ndescription: x\nno end")
      yield* put(join(at("yaml"), "SKILL.md"), "---\ndescription: [\n---\n")
      yield* put(join(at("named"), "SKILL.md"), skill("x", "x", "../../etc"))
      yield* put(join(at("bad name"), "SKILL.md"), skill("x", "x"))
      yield* put(join(at("folder"), "SKILL.md", "x"), "a folder in its place")
      yield* put(join(at("empty"), "note.txt"), "no SKILL.md")
      yield* put(join(outside, "SKILL.md"), skill("a stranger's", "x"))
      symlinkSync(outside, at("linked"))
      const { list } = yield* skillsAt(here)
      assert.deepStrictEqual((yield* list).map(Struct.get("name")), ["good"])
    })
  )

  for (const [what, text, why] of [
    ["no description", "---\nname: x\n---\n", '"description": is missing'],
    [
      "a description that is no text",
      "---\ndescription: [a, b]\n---\n",
      '"description": expected a text that says when the skill is of use'
    ],
    ["front matter that is a list", "---\n- a\n---\n", "the front matter: expected keys with their values"]
  ] as const) {
    it.scoped(`CX-45: ${what} is told in a sentence`, () => {
      const warnings: Array<string> = []
      return Effect.gen(function* () {
        const here = yield* folder
        const file = join(here, ".daybook", "skills", "x", "SKILL.md")
        yield* put(file, text)
        assert.deepStrictEqual(yield* (yield* skillsAt(here)).list, [])
        assert.deepStrictEqual(warnings, [`the skill ${file} is ignored: ${why}`])
      }).pipe(Effect.provide(recording(warnings)))
    })
  }
})

describe("guidance", () => {
  const key = "agent/skills"

  it.scoped("EP-1: the skills that the turn's agent may load are told by name and description, without bodies", () =>
    Effect.gen(function* () {
      const here = yield* folder
      yield* put(join(here, ".daybook", "skills", "release", "SKILL.md"), skill("how to release", "The body."))
      yield* put(join(here, ".daybook", "skills", "secret", "SKILL.md"), skill("not for all", "The body."))
      const { look } = yield* registryAt(here)
      const permissions: ReadonlyArray<Rule> = [
        ...allowed,
        { permission: "skill", resource: "secret", verdict: "deny" }
      ]
      const told = listener(key)(yield* look({ agent: { name: "careful", permissions } })) ?? ""
      assert.include(told, "- release: how to release")
      assert.notInclude(told, "secret")
      assert.notInclude(told, "The body.")
    })
  )

  it.scoped("EP-4: another agent's skills are told in place of the first one's, and that there are none any more", () =>
    Effect.gen(function* () {
      const here = yield* folder
      for (const name of ["a", "b"]) yield* put(join(here, ".daybook", "skills", name, "SKILL.md"), skill(name, "x"))
      const { look } = yield* registryAt(here)
      const agentWithout = (resource: string) => ({
        agent: { name: "x", permissions: [...allowed, { permission: "skill", resource, verdict: "deny" as const }] }
      })
      const tell = listener(key)
      tell(yield* look())
      const fewer = tell(yield* look(agentWithout("a"))) ?? ""
      assert.include(fewer, "in place of those named before:\n- b: b")
      assert.notInclude(fewer, "- a:")
      assert.include(tell(yield* look(agentWithout("*"))), "no skills to load any more")
    })
  )
})

describe("the tool", () => {
  it.scoped("CX-47: it gives the body, and names the files beside it", () =>
    Effect.gen(function* () {
      const here = yield* folder
      const at = join(here, ".daybook", "skills", "release")
      yield* put(join(at, "SKILL.md"), skill("how to release", "Step one."))
      yield* put(join(at, "scripts", "tag.sh"), "true")
      const text = textOf(yield* (yield* toolAt(here))("release"))
      assert.include(text, "Step one.")
      assert.include(text, `${at}:\n- scripts/tag.sh`)
      assert.notInclude(text, "description:")
    })
  )

  it.scoped("CX-47: an unknown name tells those that the agent may load; a denied one is refused", () =>
    Effect.gen(function* () {
      const here = yield* folder
      for (const name of ["a", "b"]) yield* put(join(here, ".daybook", "skills", name, "SKILL.md"), skill(name, "x"))
      const load = yield* toolAt(here, [...allowed, { permission: "skill", resource: "b", verdict: "deny" }])
      const unknown = yield* Effect.flip(load("c"))
      assert.deepInclude(unknown, { type: "tool.input", message: 'there is no skill "c"; there are: a' })
      assert.deepInclude(yield* Effect.flip(load("b")), { type: "permission.denied" })
    })
  )
})
