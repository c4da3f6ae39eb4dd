import { assert, beforeAll, describe, it } from "@effect/vitest"
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { spawn, spawnSync } from "node:child_process"
import { build } from "../cli/support/Bundle.ts"
import { root } from "./support/Packages.ts"

const files = ["README.md", ...["follow-the-log", "run-as-a-service"].map((name) => `docs/guides/${name}.md`)]
const texts = files.map((file) => readFileSync(join(root, file), "utf8")).join("\n")

/** The blocks of a language, those of the README first. */
const blocks = (language: string): ReadonlyArray<string> =>
  Array.from(texts.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "gm")), ([, text = ""]) => text)

describe("the commands of the README and of two guides", () => {
  /** A home of its own, and `npx` that runs the commands of today's sources. */
  const home = mkdtempSync(join(tmpdir(), "daybook-readme-"))
  const env = { PATH: `${home}/bin:${process.env["PATH"] ?? ""}`, HOME: home, DAYBOOK_DB: join(home, "data.sqlite") }
  beforeAll(() => {
    const { bin, ctx } = build()
    mkdirSync(join(home, "bin"))
    const cases = [`daybook) file='${bin}' ;;`, `ctx) file='${ctx}' ;;`, `*) exit 127 ;;`].join("\n")
    const script = `#!/bin/sh\nname=$1; shift\ncase $name in\n${cases}\nesac\nexec '${process.execPath}' "$file" "$@"\n`
    writeFileSync(join(home, "bin", "npx"), script)
    // What is installed stays installed.
    writeFileSync(join(home, "bin", "npm"), '#!/bin/sh\n[ "$1" = ci ]\n')
    chmodSync(join(home, "bin", "npx"), 0o755)
    chmodSync(join(home, "bin", "npm"), 0o755)
    return () => rmSync(home, { recursive: true, force: true, maxRetries: 5 })
  })

  it("the first command prints what is shown below it", () => {
    const [first = ""] = blocks("sh")
    const [shown = ""] = blocks("text")
    const { status, stderr, stdout } = spawnSync("bash", ["-ec", `exec 2>&1\n${first}`], {
      cwd: root,
      env,
      encoding: "utf8"
    })
    assert.strictEqual(status, 0, stderr)
    const same = (text: string) => text.replaceAll(/ses_\w+/g, "ses_")
    const lines = same(shown).trimEnd().split("\n")
    assert.strictEqual(lines.at(-1), "...")
    assert.deepStrictEqual(
      same(stdout)
        .split("\n")
        .slice(0, lines.length - 1),
      lines.slice(0, -1)
    )
  })

  it("the command that follows prints the events as JSON, and goes on", async () => {
    const follow = blocks("sh").find((block) => block.includes("--follow")) ?? ""
    const child = spawn("bash", ["-c", `exec ${follow}`], { cwd: root, env })
    const text = await new Promise<string>((resolve, reject) => {
      let seen = ""
      child.stdout.setEncoding("utf8").on("data", (part: string) => {
        seen += part
        if (seen.includes("activity.settled")) resolve(seen)
      })
      child.once("close", (code) => reject(new Error(`ended with ${code}: ${seen}`)))
    })
    child.removeAllListeners("close")
    child.kill("SIGKILL")
    assert.strictEqual(JSON.parse(text.split("\n")[0] ?? "").type, "session.created")
  })

  it("the block of the socket works as pasted", () => {
    const block = blocks("sh").find((text) => text.includes("build.sock")) ?? ""
    // As at a prompt: the block, then the server is stopped.
    const script = `set -m\n${block}\nkill %1; wait %1; echo "server $?"`
    const { stderr, stdout } = spawnSync("bash", ["-c", script], { cwd: home, env, encoding: "utf8" })
    const lines = stdout.split("\n")
    const rows = lines.filter((line) => line.startsWith('{"'))
    assert.isAbove(rows.length, 4, `${stdout}${stderr}`)
    assert.include(stdout, "This is Daybook's offline model")
    assert.include(stdout, "\nready\n")
    assert.include(lines, "server 0")
    // The session's name may follow.
    assert.isTrue(rows.some((row) => row.includes('"type":"done"')))
  })
})
