/**
 * What a command in a sandbox tries: real commands in a real sandbox, and a host that looks at what is left. Each way to run a
 * command in a sandbox runs these cases.
 */
import { spawn } from "node:child_process"
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer, type ListenOptions } from "node:net"
import { homedir } from "node:os"
import { join, relative } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import type { SandboxSettings } from "../../packages/core/src/child/Sandbox.ts"
import { makeLifeline } from "../tools/Lifeline.ts"
import { temporaryFolder } from "../tools/Workbench.ts"

/** What became of a command. */
export interface Tried {
  readonly exitCode: number | null
  /** The bound that ended it. */
  readonly stopped: string | undefined
  readonly text: string
}

/** A folder that a sandbox may write, with another one, which has a secret, beside it. */
export interface Bench {
  readonly folder: string
  readonly outside: string
  /** A folder that only the settings can name. */
  readonly beside: string
  readonly at: (name: string) => string
  readonly put: (name: string, text: string) => void
  readonly run: (command: string) => Effect.Effect<Tried>
  /** What the command prints. */
  readonly said: (command: string) => Effect.Effect<string>
  /** Ends what may live longer than a command. */
  readonly close: Effect.Effect<void>
}

/** Makes a bench with the settings, which see the folder beside. */
export type MakeBench = (
  settings?: SandboxSettings | ((beside: string) => SandboxSettings)
) => Effect.Effect<Bench, never, Scope.Scope>

/** A server of this process that tells each client a word. */
const listening = (options: ListenOptions) =>
  Effect.acquireRelease(
    Effect.async<ReturnType<typeof createServer>>((resume) => {
      const server = createServer((socket) => socket.on("error", () => undefined).end("reached"))
      server.listen(options, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  )

/** Prints what a server says, or why it cannot be reached. */
const reach = (target: string) =>
  `node -e 'const s=require("net").connect(${target});s.on("error",e=>console.log("no:"+e.code)).pipe(process.stdout)'`

export const escapeSuite = (name: string, makeBench: MakeBench) =>
  describe.skipIf(process.platform !== "linux")(name, () => {
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

    it.scopedLive(`SB-5: sees and reaches no process but its own (${name})`, () =>
      Effect.gen(function* () {
        const bench = yield* makeBench()
        const victim = yield* Effect.acquireRelease(
          Effect.sync(() => spawn("sleep", ["600"], { stdio: "ignore" })),
          (child) => Effect.sync(() => child.kill("SIGKILL"))
        )
        const said = yield* bench.said(
          `for p in ${victim.pid} ${process.pid} ${process.ppid}; do kill -9 $p 2>/dev/null && echo killed $p; ` +
            `test -e /proc/$p/environ && tr '\\0' ' ' < /proc/$p/environ; done; ls -d /proc/[0-9]* | wc -l; ` +
            `tr '\\0' ' ' < /proc/1/environ; ls /proc/1/root/home /proc/1/cwd/home 2>/dev/null; (kill -9 -1); echo here`
        )
        assert.notInclude(said, "killed")
        for (const words of ["VITEST", "npm_"]) assert.notInclude(said, words)
        assert.isNull(victim.exitCode ?? victim.signalCode)
      })
    )

    it.scopedLive(
      `SB-6: has no capability, gains no privilege, and makes no further namespace, mount or device (${name})`,
      () =>
        Effect.gen(function* () {
          const bench = yield* makeBench()
          bench.put(".env", "SECRET")
          const attempts = [
            "unshare -U true",
            "unshare -Ur true",
            "unshare -m true",
            "unshare -n true",
            "nsenter -t 1 -m true",
            "mount -t tmpfs x /tmp",
            "mount --bind /usr .",
            "mount -o remount,rw /usr",
            "mount -o remount,rw /",
            "umount .env",
            "umount -l /proc",
            "mount -t proc x /proc",
            "mknod disk b 254 0",
            "mknod mem c 1 1",
            "chroot /usr true",
            "su -c true",
            "sudo -n true",
            "setpriv --reuid 1 true",
            "chown 1:1 .",
            "hostname x",
            "renice -n -5 $$",
            "echo 1 > /proc/sys/kernel/core_pattern",
            "echo c > /proc/sysrq-trigger",
            "dmesg",
            "insmod x"
          ]
          const said = yield* bench.said(
            `${attempts.map((each) => `( ${each} ) >/dev/null 2>&1 && echo 'did ${each}'`).join("; ")}; ` +
              "grep -E '^(CapEff|CapBnd|CapPrm|NoNewPrivs)' /proc/self/status"
          )
          assert.deepStrictEqual(said.match(/^did.*$/gm) ?? [], [])
          assert.match(said, /CapPrm:\t0+\nCapEff:\t0+\nCapBnd:\t0+\nNoNewPrivs:\t1\n/)
        })
    )

    it.scopedLive.skipIf(process.arch !== "x64" && process.arch !== "arm64")(
      `SB-17: reaches no keyring, no virtual-machine socket, and no call of another architecture (${name})`,
      () =>
        Effect.gen(function* () {
          const bench = yield* makeBench()
          const [keyctl, socket] = process.arch === "x64" ? [250, 41] : [219, 198]
          const calls = [
            ["the session keyring", `${keyctl}, 0, -3, 0`],
            ["io_uring", "425, 1, 0"],
            ["AF_VSOCK", `${socket}, 40, 1, 0`],
            ["AF_UNIX", `${socket}, 1, 1, 0`]
          ]
          const script = calls.map(([name, call]) => `$! = 0; print "${name}: ", syscall(${call}), " $!\\n";`).join(" ")
          const said = (yield* bench.said(`perl -e '${script}'`)).split("\n")
          assert.deepStrictEqual(said.slice(0, 3), [
            "the session keyring: -1 Function not implemented",
            "io_uring: -1 Function not implemented",
            "AF_VSOCK: -1 Address family not supported by protocol"
          ])
          assert.match(said[3] ?? "", /^AF_UNIX: \d+ $/)
        })
    )

    it.scopedLive(
      `SB-7: without a network it reaches no address, no socket of another folder and no abstract one (${name})`,
      () =>
        Effect.gen(function* () {
          const bench = yield* makeBench()
          const tcp = yield* listening({ port: 0, host: "127.0.0.1" })
          const address = tcp.address()
          const port = typeof address === "object" && address !== null ? address.port : 0
          const abstract = `daybook-test-${process.pid}`
          yield* listening({ path: `\0${abstract}` })
          yield* listening({ path: join(bench.outside, "s") })
          const targets = [
            `{host:"127.0.0.1",port:${port}}`,
            `{path:"\\0${abstract}"}`,
            `{path:"${join(bench.outside, "s")}"}`,
            `{path:"/run/docker.sock"}`,
            `{host:"192.0.2.1",port:80}`
          ]
          const said = yield* bench.said(targets.map(reach).join("; "))
          assert.deepStrictEqual(
            said
              .trim()
              .split("\n")
              .map((line) => line.slice(0, 3)),
            targets.map(() => "no:")
          )
        })
    )

    it.scopedLive(
      `SB-7: with the host's network it reaches addresses, and still no socket of another folder (${name})`,
      () =>
        Effect.gen(function* () {
          const bench = yield* makeBench({ network: "on" })
          const tcp = yield* listening({ port: 0, host: "127.0.0.1" })
          const address = tcp.address()
          const port = typeof address === "object" && address !== null ? address.port : 0
          yield* listening({ path: join(bench.outside, "s") })
          const said = yield* bench.said(
            [`{host:"127.0.0.1",port:${port}}`, `{path:"${join(bench.outside, "s")}"}`].map(reach).join("; echo; ")
          )
          assert.deepStrictEqual(said.trim().split("\n"), ["reached", "no:ENOENT"])
        })
    )

    it.scopedLive(`SB-8: has no terminal to type into, and an environment without secrets (${name})`, () =>
      Effect.gen(function* () {
        const bench = yield* makeBench()
        process.env["SB_TOKEN"] = "secret-token"
        yield* Effect.addFinalizer(() => Effect.sync(() => delete process.env["SB_TOKEN"]))
        const said = yield* bench.said(
          "( : < /dev/tty ) 2>/dev/null && echo terminal; tty; env; cat /proc/*/environ | tr '\\0' '\\n'; ls -l /proc/self/fd"
        )
        assert.notMatch(said, /^terminal|secret-token/m)
        assert.include(said, "not a tty")
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

    it.scopedLive(`SB-8: inherits the standard streams alone (${name})`, () =>
      Effect.gen(function* () {
        const bench = yield* makeBench()
        // `ls` opens the folder that it lists.
        const said = yield* bench.said("ls /proc/self/fd")
        assert.strictEqual(said.trim(), "0\n1\n2\n3")
      })
    )

    it.scopedLive(`SB-9: a command that starts too many processes is ended, with all of them (${name})`, () =>
      Effect.gen(function* () {
        const bench = yield* makeBench({ processes: 64 })
        const life = yield* makeLifeline(bench.folder)
        const output = yield* bench.run("exec 3>life; echo on >&3; for i in $(seq 120); do sleep 60 & done; wait")
        yield* life.ended
        assert.strictEqual(output.stopped, "processes")
        assert.include(output.text, "the sandbox allows 64 processes")
      })
    )

    it.scopedLive(`SB-9: a fork bomb is held, and the host goes on (${name})`, () =>
      Effect.gen(function* () {
        const bench = yield* makeBench({ processes: 64 })
        const life = yield* makeLifeline(bench.folder)
        // It would begin 8,192 processes, and then no more.
        const bomb =
          "exec 3>life; echo on >&3; b() { test $1 -gt 12 || { b $(($1 + 1)) | b $(($1 + 1)) & wait; }; sleep 5; }; b 1"
        const output = yield* bench.run(`{ ${bomb}; } 2>/dev/null; sleep 60`)
        yield* life.ended
        assert.strictEqual(output.stopped, "processes")
      })
    )

    it.scopedLive(`SB-9: memory is bounded, of one process and of all together (${name})`, () =>
      Effect.gen(function* () {
        const bench = yield* makeBench({ memory: 256 })
        const one = yield* bench.run("node -e 'const a=[];for(;;)a.push(Buffer.alloc(1<<24,1))'")
        assert.notStrictEqual(one.exitCode, 0)
        const each = "node -e 'const a=Buffer.alloc(120<<20,1);setTimeout(()=>a,30000)'"
        const all = yield* bench.run(`${each} & ${each} & ${each} & wait; sleep 30`)
        assert.strictEqual(all.stopped, "memory")
        const disk = yield* bench.said(
          "head -c 300M /dev/zero > /tmp/big; head -c 300M /dev/zero > /dev/shm/big; stat -c %s /tmp/big"
        )
        assert.isAtMost(Number(/^\d+$/m.exec(disk)?.[0]), 64 * 1024 * 1024)
      })
    )

    it.scopedLive(`SB-10: no process outlives the sandbox, not even one that left its session (${name})`, () =>
      Effect.gen(function* () {
        const bench = yield* makeBench()
        const life = yield* makeLifeline(bench.folder)
        const command =
          "setsid -f sh -c 'trap \"\" TERM HUP; exec 3>life; echo on >&3; touch up; sleep 600'; until test -e up; do :; done"
        const output = yield* bench.run(command)
        yield* bench.close
        yield* life.ended
        assert.strictEqual(output.exitCode, 0)
      })
    )
  })
