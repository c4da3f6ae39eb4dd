import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, Struct } from "effect"
import * as Templates from "../../packages/core/src/prompt/Templates.ts"
import { temporaryFolder } from "../support/Database.ts"

const bench = Effect.fnUntraced(function* (options: Templates.TemplateOptions = {}) {
  const root = yield* temporaryFolder
  const location = { directory: join(root, "project", "deep") }
  mkdirSync(location.directory, { recursive: true })
  mkdirSync(join(root, "project", ".git"))
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  const layer = Templates.layer({ userFolder: join(root, "user"), ...options })
  const templates = Context.get(yield* Layer.build(layer), Templates.Templates)
  return { root, location, write, templates }
})

it.scoped("CF-19: a template is found in the configuration, the user's folder and the project, in this order", () =>
  Effect.gen(function* () {
    const { location, root, templates, write } = yield* bench({ templates: [{ name: "a", body: "configured" }] })
    for (const name of ["a", "b"]) write(`user/templates/${name}.md`, `---\ndescription: Mine\n---\nuser ${name}\n`)
    for (const name of ["a", "b", "c"]) write(`project/.daybook/templates/${name}.md`, `project ${name}`)
    assert.deepStrictEqual(yield* templates.find("a", location), { name: "a", body: "configured" })
    assert.deepStrictEqual(yield* templates.find("b", location), { name: "b", description: "Mine", body: "user b" })
    assert.deepStrictEqual(yield* templates.find("c", location), { name: "c", body: "project c" })
    assert.deepStrictEqual((yield* templates.list()).map(Struct.get("name")), ["a", "b"])
    const problems = yield* templates.problems(location)
    assert.deepStrictEqual(
      problems.map(({ path }) => path),
      ["user/templates/a.md", "project/.daybook/templates/a.md", "project/.daybook/templates/b.md"].map((name) =>
        join(root, name)
      )
    )
  })
)

it.scoped("CF-19: projects are left alone with projectConfig false", () =>
  Effect.gen(function* () {
    const { location, templates, write } = yield* bench({ projectConfig: false })
    write("project/.daybook/templates/c.md", "project c")
    assert.strictEqual(
      (yield* Effect.flip(templates.find("c", location))).message,
      'there is no template "c"; there are none'
    )
  })
)

it.scoped("CF-17: asking for a template whose file is broken says what is wrong with it", () =>
  Effect.gen(function* () {
    const { location, root, templates, write } = yield* bench()
    write("user/templates/empty.md", "---\ndescription: Nothing follows\n---\n\n")
    write("user/templates/key.md", "---\ndescriptions: x\n---\nText")
    write("secret.md", "SECRET")
    write("project/.daybook/templates/ok.md", "Fine")
    write("project/.daybook/templates/key.md", "Not instead of the broken one")
    symlinkSync(join(root, "secret.md"), join(root, "project/.daybook/templates/escape.md"))
    const message = (name: string) => Effect.map(Effect.flip(templates.find(name, location)), (error) => error.message)
    assert.match(yield* message("empty"), /^template "empty" cannot be used: .*empty\.md: it has no text/)
    assert.match(yield* message("key"), /user.*line 2, column \d+: descriptions: .*did you mean "description"\?/)
    assert.match(yield* message("escape"), /leads out of its project/)
    assert.strictEqual(yield* message("none"), 'there is no template "none"; known: ok')
    assert.include(yield* message("../../secret"), "there is no template")
  })
)
