/** Instructions from files as a session is told them: which are found, which counts more, what goes (EP-1, EP-7, EP-11, EP-12). */
import { mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs"
import { basename, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, FastCheck as fc } from "effect"
import { bounded, describeChange, maximumTotal, type Entry } from "../../packages/core/src/context/Instructions.ts"
import { makeReader } from "../../packages/core/src/context/InstructionFile.ts"
import { nestedInstructions } from "../../packages/core/src/context/InstructionDiscovery.ts"
import { folder, listener, put, registryAt, turn } from "./support/Look.ts"

const project = "instructions/4-project"

/** A project with a root and a Location two folders below. */
const makeProject = Effect.gen(function* () {
  const root = yield* folder
  const here = join(root, "packages", "core")
  mkdirSync(here, { recursive: true })
  mkdirSync(join(root, ".git"))
  return { root, here }
})

describe("of the project", () => {
  it.scoped(
    "EP-1: files from the project's root down to the Location are told in that order, and none from above",
    () =>
      Effect.gen(function* () {
        const { here, root } = yield* makeProject
        yield* put(join(root, "AGENTS.md"), "Root rule.")
        yield* put(join(root, "packages", "AGENTS.md"), "Middle rule.")
        yield* put(join(here, "AGENTS.md"), "Inner rule.")
        const { look } = yield* registryAt(join(root, "packages"))
        const told = listener(project)(yield* look()) ?? ""
        assert.match(told, /Root rule\.[^]*Middle rule\./)
        assert.notInclude(told, "Inner rule.")
        // EP-12: each names the path it came from.
        assert.include(told, `Instructions from ${join(root, "packages", "AGENTS.md")}:\nMiddle rule.`)
      })
  )

  it.scoped("EP-11: outside a repository nothing above the Location is read", () =>
    Effect.gen(function* () {
      const above = yield* folder
      yield* put(join(above, "AGENTS.md"), "A stranger's rule.")
      yield* put(join(above, "here", "AGENTS.md"), "Our rule.")
      const { look } = yield* registryAt(join(above, "here"))
      const told = listener(project)(yield* look()) ?? ""
      assert.include(told, "Our rule.")
      assert.notInclude(told, "stranger")
    })
  )

  it.scoped("CX-25: CLAUDE.md counts in a folder that has no AGENTS.md, and there alone", () =>
    Effect.gen(function* () {
      const { here, root } = yield* makeProject
      yield* put(join(root, "CLAUDE.md"), "Root by the other name.")
      yield* put(join(here, "AGENTS.md"), "Inner rule.")
      yield* put(join(here, "CLAUDE.md"), "Not this one.")
      const { look } = yield* registryAt(here)
      const told = listener(project)(yield* look()) ?? ""
      assert.match(told, /Root by the other name\.[^]*Inner rule\./)
      assert.notInclude(told, "Not this one.")
    })
  )

  it.scoped("EP-11: a file that leads out of the project is not read", () =>
    Effect.gen(function* () {
      const { here, root } = yield* makeProject
      const outside = yield* folder
      yield* put(join(outside, "secret"), "the secret")
      symlinkSync(join(outside, "secret"), join(root, "AGENTS.md"))
      const { look } = yield* registryAt(here)
      assert.isUndefined(listener(project)(yield* look()))
    })
  )

  it.scoped("EP-7: when one file goes, the complete rest is told in place of what was said; the last is revoked", () =>
    Effect.gen(function* () {
      const { here, root } = yield* makeProject
      yield* put(join(root, "AGENTS.md"), "Root rule.")
      yield* put(join(here, "AGENTS.md"), "Inner rule.")
      const { look } = yield* registryAt(here)
      const tell = listener(project)
      tell(yield* look())
      rmSync(join(root, "AGENTS.md"))
      const rest = tell(yield* look()) ?? ""
      assert.include(rest, "they supersede all that were given before")
      assert.include(rest, `What came from ${join(root, "AGENTS.md")} no longer holds.`)
      assert.include(rest, "Inner rule.")
      assert.notInclude(rest, "Root rule.")
      rmSync(join(here, "AGENTS.md"))
      const last = tell(yield* look()) ?? ""
      assert.include(last, `nothing that came from ${join(here, "AGENTS.md")} holds any longer`)
      assert.isUndefined(tell(yield* look()))
    })
  )

  it.scoped("EP-4: what changed is told alone; what comes to stand before others tells the order anew", () =>
    Effect.gen(function* () {
      const { here, root } = yield* makeProject
      yield* put(join(here, "AGENTS.md"), "Inner rule.")
      const { look } = yield* registryAt(here)
      const tell = listener(project)
      tell(yield* look())
      assert.isUndefined(tell(yield* look()))
      yield* put(join(here, "AGENTS.md"), "Inner rule, changed.")
      assert.include(tell(yield* look()), "supersedes the earlier one")
      yield* put(join(root, "AGENTS.md"), "Root rule.")
      const both = tell(yield* look()) ?? ""
      assert.match(both, /supersede all[^]*Root rule\.[^]*Inner rule, changed\./)
    })
  )

  it.scoped(
    "CX-41: a class has a bound over all its files; what has no room is named, and what has some is shown",
    () =>
      Effect.gen(function* () {
        const root = yield* folder
        mkdirSync(join(root, ".git"))
        yield* put(join(root, "AGENTS.md"), "x".repeat(100 * 1024))
        yield* put(join(root, "a", "AGENTS.md"), "y".repeat(100 * 1024))
        yield* put(join(root, "a", "b", "AGENTS.md"), "Inner rule.")
        const { look } = yield* registryAt(join(root, "a", "b"))
        const told = listener(project)(yield* look()) ?? ""
        assert.isBelow(told.length, maximumTotal + 1_000)
        assert.include(
          told,
          `Instructions from ${join(root, "a", "AGENTS.md")}:\n[Not shown: instructions of this kind may have`
        )
        assert.include(told, "Inner rule.")
      })
  )

  it.scoped("CX-41: one file that is as long as may be shown has its room, with the note that it was cut", () =>
    Effect.gen(function* () {
      const root = yield* folder
      yield* put(join(root, "AGENTS.md"), "x".repeat(300 * 1024))
      const told = listener(project)(yield* (yield* registryAt(root)).look()) ?? ""
      assert.match(told, /xxx\n\[Cut after 131072 bytes/)
    })
  )

  it("CX-41: of files without room so many are named, and the last of them says how many more there are", () => {
    const entries = Array.from({ length: 100 }, (_, index) => ({ path: `/${index}`, text: "x".repeat(maximumTotal) }))
    const shown = bounded(entries)
    assert.strictEqual(shown.length, 33)
    assert.match(shown[31]?.text ?? "", /^\[Not shown: /)
    assert.match(shown[32]?.text ?? "", /^\[Not shown, nor are 67 after it: /)
  })

  for (const name of ["DAYBOOK_DISABLE_PROJECT_CONFIG", "OPENCODE_DISABLE_PROJECT_CONFIG"]) {
    it.scoped(`EP-11: ${name} turns the project's own off, and nothing else`, () =>
      Effect.gen(function* () {
        const [here, user] = [yield* folder, yield* folder]
        yield* put(join(here, "AGENTS.md"), "Project rule.")
        yield* put(join(here, ".daybook", "skills", "x", "SKILL.md"), "---\ndescription: of use\n---\nDo.")
        yield* put(join(user, "AGENTS.md"), "User rule.")
        const { look } = yield* registryAt(here, { userFolder: user }).pipe(
          Effect.withConfigProvider(ConfigProvider.fromMap(new Map([[name, "1"]])))
        )
        const observed = yield* look()
        assert.isUndefined(listener(project)(observed))
        assert.isUndefined(listener("agent/skills")(observed))
        assert.include(listener("instructions/1-global")(observed), "User rule.")
      })
    )
  }
})

it.scoped("CX-26: of the folders that were read in, the first 64 are told, and how many there are besides", () =>
  Effect.gen(function* () {
    const here = yield* folder
    const files = Array.from({ length: 67 }, (_, index) => join(here, `at${index}`, "AGENTS.md"))
    for (const [index, file] of files.entries()) yield* put(file, `Rule ${index}.`)
    const told = Effect.fnUntraced(function* (count: number) {
      const known = () => Effect.succeed(files.slice(0, count))
      const nested = nestedInstructions(makeReader(), here, known)
      return listener(nested.key)(new Map([[nested.key, yield* nested.load(turn)]])) ?? ""
    })
    assert.notInclude(yield* told(64), "Not shown")
    assert.include(yield* told(65), `Instructions from ${join(here, "at64")}:\n[Not shown: of the folders`)
    const all = yield* told(67)
    assert.include(all, "Rule 63.")
    assert.notInclude(all, "Rule 64.")
    assert.include(all, `${join(here, "at64")}:\n[Not shown, nor are those of 2 folders found later: of the folders`)
  })
)

describe("of the user and the configuration", () => {
  it.scoped("CX-23: AGENTS.md of the user's folder; without such a folder nothing of the user's is read", () =>
    Effect.gen(function* () {
      const [here, user] = [yield* folder, yield* folder]
      yield* put(join(user, "AGENTS.md"), "User rule.")
      const key = "instructions/1-global"
      assert.isUndefined(listener(key)(yield* (yield* registryAt(here)).look()))
      assert.include(listener(key)(yield* (yield* registryAt(here, { userFolder: user })).look()), "User rule.")
    })
  )

  it.scoped("CX-24: configured files and globs are told in the order of the configuration, each file once", () =>
    Effect.gen(function* () {
      const [here, elsewhere] = [yield* folder, yield* folder]
      // Brackets in the folder's own name are no pattern.
      const odd = join(here, "a[b]")
      yield* put(join(odd, "rules", "2.md"), "Two.")
      yield* put(join(odd, "rules", "1.md"), "One.")
      yield* put(join(odd, "first.md"), "First.")
      yield* put(join(elsewhere, "x.md"), "Elsewhere.")
      const instructions = ["first.md", "rules/*.md", "rules/2.md", join(elsewhere, "*.md"), "none.md", "http://[bad"]
      const { look } = yield* registryAt(odd, { instructions })
      const told = listener("instructions/2-configured")(yield* look()) ?? ""
      const files = [...told.matchAll(/Instructions from (.*):/g)].map(([, path]) => basename(path ?? ""))
      assert.deepStrictEqual(files, ["first.md", "1.md", "2.md", "x.md"])
    })
  )

  it.scoped("EP-11: a configured file that cannot be read keeps what was told, and nothing is said", () =>
    Effect.gen(function* () {
      const here = yield* folder
      yield* put(join(here, "rules.md"), "Rule.")
      const { look } = yield* registryAt(here, { instructions: ["rules.md"] })
      const tell = listener("instructions/2-configured")
      tell(yield* look())
      // A file that no reader may read from its start, whoever asks, takes its place.
      renameSync(join(here, "rules.md"), join(here, "aside.md"))
      symlinkSync("/proc/self/mem", join(here, "rules.md"))
      assert.isUndefined(tell(yield* look()))
      rmSync(join(here, "rules.md"))
      assert.include(tell(yield* look()), "holds any longer")
    })
  )
})

const entries = fc.uniqueArray(
  fc.record({ path: fc.constantFrom("/a", "/b", "/c", "/d"), text: fc.constantFrom("one.", "two.", "three.") }),
  { selector: ({ path }) => path, minLength: 1 }
)

it.prop(
  "EP-7: whatever changes, whoever knows what was told and reads the change knows exactly the current instructions",
  [entries, entries],
  ([previous, current]) => {
    const words = describeChange("the rules", previous, current)
    const told: ReadonlyArray<Entry> = [...words.matchAll(/Instructions from (\S+):\n(\S+)/g)].map(
      ([, path, text]) => ({
        path: path ?? "",
        text: text ?? ""
      })
    )
    const known = new Map(words.includes("nothing else") ? [] : previous.map(({ path, text }) => [path, text]))
    for (const { path, text } of told) known.set(path, text ?? "")
    assert.deepStrictEqual(
      [...known],
      current.map(({ path, text }) => [path, text])
    )
    assert.strictEqual(words === "", JSON.stringify(previous) === JSON.stringify(current))
  }
)
