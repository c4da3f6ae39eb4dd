/** What a command in a sandbox tries with files: real commands in a real sandbox, and a host that looks at what is left. */
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { join, relative } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../tools/Workbench.ts"
import type { MakeBench } from "./EscapeBench.ts"

export const escapeFiles = (name: string, makeBench: MakeBench) => {
  it.scopedLive(`SB-1: does its work in the Location, and its files are the person's (${name})`, () =>
    Effect.gen(function* () {
      const bench = yield* makeBench()
      bench.put("src/a.txt", "one\n")
      const command =
        "pwd; cat src/a.txt; mkdir made; echo two > made/b; cp src/a.txt c; node -p 1+1; echo $HOME > /tmp/x; exit 3"
      const output = yield* bench.run(command)
      assert.strictEqual(output.exitCode, 3)
      assert.include(output.text, `${bench.folder}\none\n2\n`)
      assert.strictEqual(readFileSync(bench.at("made/b"), "utf8"), "two\n")
      assert.strictEqual(readFileSync(bench.at("c"), "utf8"), "one\n")
    })
  )

  it.scopedLive(
    `SB-2: writes nothing outside: neither by a path, nor a link, nor a hard link, nor upwards (${name})`,
    () =>
      Effect.gen(function* () {
        const bench = yield* makeBench()
        const before = readdirSync(bench.outside)
        symlinkSync(bench.outside, bench.at("out"))
        symlinkSync("/etc/passwd", bench.at("passwd"))
        const targets = [
          `${bench.outside}/x`,
          "../outside/x",
          "out/x",
          "out/secret",
          "../x",
          "passwd",
          "/etc/x",
          "/usr/x",
          "/x",
          "/bin/x",
          "/var/x",
          "/run/x",
          "/proc/sys/kernel/core_pattern",
          "/proc/self/root/etc/passwd",
          "/dev/sda",
          "/dev/shm/../y"
        ]
        const said = yield* bench.said(
          `for f in ${targets.join(" ")}; do { echo x > $f; } 2>/dev/null && test -w $f && echo "wrote $f"; done; ` +
            `ln ${bench.outside}/secret hard 2>/dev/null && echo linked; mv src ../ 2>/dev/null; rm -rf /usr/bin/env 2>/dev/null; true`
        )
        // The parent of the Location is a folder of the private /tmp.
        assert.deepStrictEqual(said.match(/^(?:wrote|linked).*$/gm) ?? [], ["wrote ../x"])
        assert.deepStrictEqual(readdirSync(bench.outside), before)
        assert.strictEqual(readFileSync(join(bench.outside, "secret"), "utf8"), "secret-beside")
        assert.isTrue(existsSync("/usr/bin/env"))
        assert.isFalse(existsSync(join(bench.folder, "../x")))
      })
  )

  it.scopedLive(`SB-2: reads nothing of the home folder, of other folders or of the system's secrets (${name})`, () =>
    Effect.gen(function* () {
      const bench = yield* makeBench()
      symlinkSync(join(bench.outside, "secret"), bench.at("link"))
      const names = [
        join(bench.outside, "secret"),
        "link",
        "../outside/secret",
        homedir(),
        "/etc/shadow",
        "/etc/sudoers",
        "/etc/ssh",
        "/etc/ssl/private",
        "/var/log",
        "/var/lib",
        "/var/spool",
        "/run/docker.sock",
        "/root/.ssh",
        "/sys",
        "/boot",
        "/mnt",
        "/srv",
        "/dev/vda",
        "/dev/mem",
        "/proc/kcore",
        "/dev/kmsg",
        process.cwd()
      ]
      const said = yield* bench.said(
        `for f in ${names.join(" ")}; do cat $f 2>/dev/null; ls -A $f 2>/dev/null; done; true`
      )
      assert.deepStrictEqual(
        said.split("\n").filter((line) => line !== "" && line !== "link" && line !== "/proc/kcore"),
        []
      )
      assert.notInclude(said, "secret-beside")
    })
  )

  it.scopedLive(`SB-3: what is protected in the Location is read-only, and secrets in it are hidden (${name})`, () =>
    Effect.gen(function* () {
      const bench = yield* makeBench()
      const obeyed = [
        ".git/config",
        ".git/hooks/pre-commit",
        "AGENTS.md",
        "sub/.vscode/tasks.json",
        ".daybook/agents/a.md"
      ]
      const secrets = [".env", "sub/deep/.env.local", "tls/server.key", ".aws/credentials", "id_rsa"]
      for (const name of [...obeyed, ...secrets]) bench.put(name, `was ${name}`)
      symlinkSync("AGENTS.md", bench.at("CLAUDE.md"))
      symlinkSync("sub/plain", bench.at(".envrc"))
      bench.put("sub/plain", "was plain")
      const names = [...obeyed, ...secrets, "CLAUDE.md"].join(" ")
      const said = yield* bench.said(
        `for f in ${names}; do { echo x > $f; } 2>/dev/null; rm -f $f 2>/dev/null; mv $f moved 2>/dev/null; done; ` +
          `rm -rf .git .aws 2>/dev/null; mv .git g 2>/dev/null; cat ${secrets.join(" ")} sub/plain 2>/dev/null; cat AGENTS.md`
      )
      assert.include(said, "was AGENTS.md")
      assert.strictEqual(said.match(/was/g)?.length, 1)
      for (const name of [...obeyed, ...secrets])
        assert.strictEqual(readFileSync(bench.at(name), "utf8"), `was ${name}`)
    })
  )

  it.scopedLive(`SB-16: what is protected stays so when folders are made beside it or renamed (${name})`, () =>
    Effect.gen(function* () {
      const bench = yield* makeBench()
      for (const name of [".env", "sub/api/.env", "sub/.vscode/tasks.json", ".git/config"]) bench.put(name, "was")
      bench.put("sub/a", "mine")
      const said = yield* bench.said(
        "for i in $(seq 300); do mkdir aa$i; done; mkdir -p n/node_modules; " +
          "mv sub n/node_modules/ 2>/dev/null && echo moved; mv sub/api z 2>/dev/null && echo moved; mv sub/a sub/b && echo done"
      )
      assert.strictEqual(said.trim(), "done")
      const targets = ".env sub/api/.env z/.env z/api/.env sub/.vscode/tasks.json .git/config"
      const later = yield* bench.said(`for f in ${targets}; do cat $f; echo x > $f; done 2>/dev/null; echo end`)
      // The files that agents and programs obey may be read.
      assert.deepStrictEqual(later.match(/was/g)?.length, 2)
      for (const name of [".env", "sub/api/.env", "sub/.vscode/tasks.json", ".git/config"])
        assert.strictEqual(readFileSync(bench.at(name), "utf8"), "was")
    })
  )

  it.scopedLive(`SB-3: a protected folder that the configuration names may be written (${name})`, () =>
    Effect.gen(function* () {
      const bench = yield* makeBench((beside) => ({ writable: [beside, join(beside, ".git")] }))
      mkdirSync(join(bench.beside, ".git"))
      writeFileSync(join(bench.beside, ".env"), "hidden")
      const said = yield* bench.said(`cd ${bench.beside}; echo x > .git/config && echo wrote; cat .env; true`)
      assert.include(said, "wrote\n")
      assert.notInclude(said, "hidden")
      assert.strictEqual(readFileSync(join(bench.beside, ".git/config"), "utf8"), "x\n")
    })
  )

  it.scopedLive(`SB-4: the runtime's own files are hidden also where they lie in the Location (${name})`, () =>
    Effect.gen(function* () {
      const bench = yield* makeBench((beside) => ({
        writable: [beside],
        hidden: ["daybook.sqlite", "daybook.sqlite-wal", "config"].map((name) => join(beside, name))
      }))
      for (const name of ["daybook.sqlite", "daybook.sqlite-wal"]) writeFileSync(join(bench.beside, name), "prompts")
      mkdirSync(join(bench.beside, "config"))
      writeFileSync(join(bench.beside, "config/config.yaml"), "keys")
      linkSync(join(bench.beside, "config/config.yaml"), join(bench.outside, "kept"))
      const said = yield* bench.said(
        `cd ${bench.beside}; cat * config/*; ls config; echo x > daybook.sqlite; echo y > config/n`
      )
      assert.notMatch(said, /prompts|keys|config\.yaml$/m)
      assert.strictEqual(readFileSync(join(bench.beside, "daybook.sqlite"), "utf8"), "prompts")
      assert.deepStrictEqual(readdirSync(join(bench.beside, "config")), ["config.yaml"])
    })
  )

  it.scopedLive(`SB-16: a folder with a hidden file cannot be renamed, so the file stays hidden (${name})`, () =>
    Effect.gen(function* () {
      const bench = yield* makeBench((beside) => ({
        writable: [beside],
        hidden: [join(beside, "data/deep/daybook.sqlite")]
      }))
      mkdirSync(join(bench.beside, "data/deep"), { recursive: true })
      writeFileSync(join(bench.beside, "data/deep/daybook.sqlite"), "prompts")
      yield* bench.run(`cd ${bench.beside}; mv data other; mv data/deep deep; cat */*/daybook.sqlite`)
      const said = yield* bench.said(`cd ${bench.beside}; cat */daybook.sqlite */*/daybook.sqlite`)
      assert.notInclude(said, "prompts")
      assert.isTrue(existsSync(join(bench.beside, "data/deep/daybook.sqlite")))
    })
  )

  it.scopedLive(
    `SB-18: what a link shows that takes a folder's place while the sandbox is made stops it (${name})`,
    () =>
      Effect.gen(function* () {
        const home = yield* temporaryFolder
        const before = process.env["HOME"]
        yield* Effect.addFinalizer(() => Effect.sync(() => (process.env["HOME"] = before)))
        process.env["HOME"] = home
        mkdirSync(join(home, ".git"))
        writeFileSync(join(home, "private"), "of the person")
        // Moves the folder when `bwrap` is called, as a job of another sandbox could.
        const bench = yield* makeBench((beside) => {
          const [folder, program] = [join(beside, "x"), join(beside, "bwrap")]
          const move = `mv ${folder} ${beside}/y && ln -s ${relative(beside, home)} ${folder}`
          const text = `#!/bin/sh\ncase "$*" in *" ${folder} "*) ${move} ;; esac\nexec /usr/bin/bwrap "$@"\n`
          writeFileSync(program, text, { mode: 0o755 })
          mkdirSync(join(folder, ".git"), { recursive: true })
          return { writable: [beside], program }
        })
        const said = yield* Effect.exit(bench.said(`cat ~/private; touch ${bench.beside}/ran`))
        assert.include(String(said), "was moved while the sandbox was made")
        assert.deepStrictEqual(readdirSync(bench.beside).toSorted(), ["bwrap", "x", "y"])
      })
  )
}
