/** What a command in a sandbox tries with processes, privileges, networks and resources, in a real sandbox. */
import { spawn } from "node:child_process"
import { createServer, type ListenOptions } from "node:net"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeLifeline } from "../tools/Lifeline.ts"
import type { MakeBench } from "./EscapeBench.ts"
import { lacks } from "../support/Parts.ts"

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

export const escapeProcesses = (name: string, makeBench: MakeBench) => {
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

  it.scopedLive.skipIf(lacks("processor"))(
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
}
