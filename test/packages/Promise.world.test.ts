/**
 * The client with promises, packed as it would be published and installed with npm into empty folders outside of the repository.
 * Nothing is downloaded: it needs no other package. test/long/Install.test.ts installs it beside effect 4 from the registry.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { layer, Served, token } from "../server/http/support/ServedApi.ts"
import { compile, emptyFolder, pack, root, run } from "./support/Packages.ts"

const folder = emptyFolder("daybook-promise-")
let tarball = ""
beforeAll(async () => {
  await run(root, process.execPath, join("packages", "promise", "scripts", "bundle.mjs"))
  const [name = ""] = await pack(folder, ["promise"])
  tarball = join(folder, name)
}, 120_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A project with the package, and the paths of the files that npm installed. */
const project = async (name: string, dependencies: Readonly<Record<string, string>>) => {
  const to = join(folder, name)
  mkdirSync(to)
  writeFileSync(join(to, "package.json"), JSON.stringify({ type: "module", private: true, dependencies }))
  await run(to, "npm", "install", "--offline", "--no-audit", "--no-fund", tarball)
  const installed = readdirSync(join(to, "node_modules"), { recursive: true, encoding: "utf8" })
  return { to, installed: installed.filter((file) => !file.startsWith(".")) }
}

/** Prompts a session of the server, follows it to its end, and fails as the client fails. */
const program = `
  import { connect, DaybookError } from "@daybook/promise"
  const [baseUrl, token, sessionID] = process.argv.slice(2)
  const daybook = connect({ baseUrl, token })
  await daybook.rename(sessionID, "renamed without Effect")
  const { cursor } = await daybook.head(sessionID)
  const seen = []
  for await (const item of daybook.follow({ sessionID, follow: false })) if (item.frame === "event") seen.push(item.cursor)
  const refused = await daybook.get("nope").catch((error) => error instanceof DaybookError && error.code)
  console.log(JSON.stringify([(await daybook.get(sessionID)).title, seen.at(-1) === cursor, refused]))
`

const works = (to: string) =>
  Effect.gen(function* () {
    const { url } = yield* Served
    const { id } = yield* (yield* Sessions).create({ location: { directory: to } })
    writeFileSync(join(to, "program.js"), program)
    const printed = yield* Effect.promise(() => run(to, process.execPath, "program.js", url, token, id))
    assert.deepEqual(JSON.parse(printed), ["renamed without Effect", true, "SessionNotFound"])
  }).pipe(Effect.provide(layer()))

describe("the package with promises", () => {
  it.scopedLive("PA-500: alone in a project it is the only package, has no native code, and uses a server", () =>
    Effect.gen(function* () {
      const { installed, to } = yield* Effect.promise(() => project("alone", {}))
      const files = installed.filter((file) => /\.\w+$/.test(file))
      const own = ["LICENSE", "README.md", "package.json"]
      const bundled = ["THIRD-PARTY-NOTICES.txt", "index.d.ts", "index.js", "wire.d.ts"]
      assert.sameMembers(
        [...files, "@daybook/promise/LICENSE"],
        [...own, ...bundled.map((name) => `dist/bundle/${name}`)].map((name) => `@daybook/promise/${name}`)
      )
      yield* works(to)
    })
  )

  it.scopedLive("PA-500: beside another effect it installs, imports nothing of it, and uses a server", () =>
    Effect.gen(function* () {
      const other = join(folder, "effect-4")
      mkdirSync(other)
      writeFileSync(
        join(other, "package.json"),
        JSON.stringify({ name: "effect", version: "4.0.0", type: "module", exports: "./index.js" })
      )
      writeFileSync(join(other, "index.js"), 'throw new Error("effect 4 was imported")\n')
      const { installed, to } = yield* Effect.promise(() => project("beside", { effect: `file:${other}` }))
      assert.sameMembers(
        installed.filter((file) => /^(?:@[^/]+\/)?[^/@]+$/.test(file)),
        ["@daybook/promise", "effect"]
      )
      yield* works(to)
    })
  )

  it("PA-501: its types need no other package, and are those of the client's verbs", async () => {
    const to = join(folder, "types")
    mkdirSync(to)
    symlinkSync(join(root, "node_modules"), join(to, "node_modules"))
    writeFileSync(
      join(to, "same.ts"),
      `import type * as Full from "@daybook/client/promise"
      import { connect, type Daybook, DaybookError } from "@daybook/promise"
      declare const full: Omit<Full.Daybook, "with">
      export const verbs: Omit<Daybook, "with"> = full
      export const names: keyof Daybook = "" as keyof Full.Daybook
      export const theirs: keyof Full.Daybook = "" as keyof Daybook
      const daybook = connect({ baseUrl: "http://127.0.0.1:4310", token: "t", giveUpAfter: "30 seconds" })
      export const run = async (signal: AbortSignal): Promise<unknown> => {
        const { id, title } = await daybook.create({ location: { directory: "/work" } })
        for await (const event of daybook.with({ signal }).events({ sessionID: id }))
          if (event.type === "session.next.renamed") return event.data.title === title
        // @ts-expect-error: the text is missing
        return daybook.prompt({ sessionID: id, prompt: {} }).catch((error) => error instanceof DaybookError && error.code)
      }`
    )
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      module: "nodenext",
      target: "es2022",
      lib: ["es2022", "dom", "dom.asynciterable"],
      types: [],
      noEmit: true,
      skipLibCheck: true
    }
    writeFileSync(join(to, "package.json"), JSON.stringify({ type: "module", private: true }))
    writeFileSync(join(to, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["same.ts"] }))
    await compile(to)
    // Alone, and with the libraries' types checked.
    const alone = { ...compilerOptions, skipLibCheck: false, noResolve: false }
    const declarations = join(folder, "alone", "node_modules", "@daybook", "promise", "dist", "bundle", "index.d.ts")
    writeFileSync(
      join(folder, "alone", "tsconfig.json"),
      JSON.stringify({ compilerOptions: alone, files: [declarations] })
    )
    await compile(join(folder, "alone"))
  })
})
