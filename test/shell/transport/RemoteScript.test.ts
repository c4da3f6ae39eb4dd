/** Scripts pass through the user's login shell, here the shells of this machine. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { FastCheck as fc } from "effect"
import { forAll } from "../../support/Cases.ts"
import { forLoginShell } from "../../../packages/shell/src/transport/SshTransport.ts"

const shells = ["/bin/bash", "/bin/dash", "/bin/zsh", "/usr/bin/fish", "/bin/tcsh"].filter((path) => existsSync(path))

it("SL-84: a script reaches sh unchanged through each login shell of this machine", () => {
  const character = fc.oneof(
    fc.constantFrom(..."'\"\\!$`\n\r\t #%&;~*?0123456789é€"),
    fc.string({ minLength: 1, maxLength: 1 })
  )
  const text = fc.array(character, { maxLength: 30 }).map((parts) => parts.join("").replaceAll("\0", ""))
  forAll([text], 40, (printed) => {
    const script = `cat <<'E_O_T'\n${printed}\nE_O_T`
    for (const shell of shells) {
      const { stderr, stdout } = spawnSync(shell, ["-c", forLoginShell(script)], { encoding: "utf8" })
      assert.strictEqual(stderr, "")
      assert.strictEqual(stdout, `${printed}\n`, shell)
    }
  })
})

it("SL-84: a script has no character that some login shell reads within single quotes", () => {
  forAll([fc.string({ maxLength: 200 })], 40, (script) => {
    const [, quoted = "missing'"] = /^exec sh -c '[^'\\!\n]*' sh '([\s\S]*)'$/.exec(forLoginShell(script)) ?? []
    assert.notMatch(quoted, /['!\r\n]/)
    assert.notMatch(quoted.replaceAll(/\\0[0-7]{3}/g, ""), /\\/)
  })
})
