import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Either, Exit, Fiber, Scope } from "effect"
import { listen, type ListenOptions } from "../../packages/server/src/socket/Listener.ts"
import { maxSocketPathBytes } from "../../packages/server/src/socket/SocketPath.ts"
import { connectTo } from "./support/Client.ts"
import { temporaryFolder } from "./support/Folder.ts"
import { answerPongs } from "./support/Pong.ts"

const name = "agent/coder.sock"
const pongs = (options: ListenOptions) => listen(options, answerPongs)
const mode = (path: string) => (lstatSync(path).mode & 0o777).toString(8)

const ping = (path: string, id = "p") =>
  Effect.scoped(
    Effect.gen(function* () {
      const client = yield* connectTo(path)
      yield* client.send(`{"op":"ping","id":"${id}"}\n`)
      assert.deepStrictEqual(yield* client.next, { type: "pong", id })
    })
  )

/** A socket file that a server has left behind. */
const leaveSocket = (path: string) =>
  Effect.async<void>((resume) => {
    const server = createServer().listen(`${path}.old`, () => {
      linkSync(`${path}.old`, path)
      server.close(() => resume(Effect.void))
    })
  })

const withFolder = Effect.tap(temporaryFolder, (root) => Effect.sync(() => mkdirSync(join(root, "agent"))))

it.scoped("SO-70: a client is answered, and nothing but the socket is left in its folder", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const { path } = yield* pongs({ root, name })
    assert.strictEqual(path, join(root, name))
    yield* ping(path)
    assert.deepStrictEqual(readdirSync(join(root, "agent")), ["coder.sock"])
  })
)

it.scoped("SO-71: the folder is 0700 and the socket 0600 whatever the umask, from the first instant it is there", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const seen = new Set<string>()
    const umask = process.umask(0)
    const look = Effect.sync(() => {
      for (const entry of Either.getOrElse(
        Either.try(() => readdirSync(join(root, "agent"))),
        () => []
      )) {
        if (entry === "coder.sock") seen.add(mode(join(root, name)))
        else seen.add(`${mode(join(root, "agent"))} ${mode(root)}`)
      }
    })
    const looking = yield* Effect.fork(Effect.forever(Effect.zipRight(look, Effect.yieldNow())))
    const { path } = yield* Effect.ensuring(
      pongs({ root, name }),
      Effect.sync(() => process.umask(umask))
    )
    yield* look
    yield* Fiber.interrupt(looking)
    seen.delete("700 700")
    assert.deepStrictEqual([...seen], ["600"])
    assert.strictEqual(mode(join(path, "..")), "700")
  })
)

it.scoped("SO-71: a folder that others may enter is made private; deeper ones are made", () =>
  Effect.gen(function* () {
    const root = yield* withFolder
    chmodSync(join(root, "agent"), 0o755)
    yield* pongs({ root, name })
    assert.strictEqual(mode(join(root, "agent")), "700")
    const { path } = yield* pongs({ root, name: "model/acme/m1.sock" })
    yield* ping(path)
    assert.deepStrictEqual([mode(join(root, "model")), mode(join(root, "model/acme"))], ["700", "700"])
  })
)

it.scoped("SC-3: a link in the place of the folder is refused, and nothing is made behind it", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    mkdirSync(join(root, "elsewhere"))
    symlinkSync("elsewhere", join(root, "agent"))
    const error = yield* Effect.flip(pongs({ root, name }))
    assert.strictEqual(error._tag, "SocketUnusable")
    assert.match(error.message, /not a symbolic link/)
    assert.deepStrictEqual(readdirSync(join(root, "elsewhere")), [])
  })
)

it.scoped("SO-71: a root that others may write into is refused", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    chmodSync(root, 0o777)
    const error = yield* Effect.flip(pongs({ root, name }))
    assert.match(error.message, /others may write into it/)
    assert.deepStrictEqual(readdirSync(root), [])
  })
)

it.scoped("SO-71: a socket outside its root is refused", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    for (const outside of ["../x.sock", "agent/../../x.sock", "agent//x.sock", "agent/", "/x.sock", "agent/.."]) {
      const error = yield* Effect.flip(pongs({ root: join(root, "world"), name: outside }))
      assert.strictEqual(error._tag, "SocketUnusable")
    }
    assert.notInclude(readdirSync(root), "x.sock")
  })
)

it.scoped("SO-72: a path that a socket cannot have is refused with what to do; the longest one works", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const longest = join(root, "r".repeat(maxSocketPathBytes - root.length - name.length - 2))
    const { path } = yield* pongs({ root: longest, name })
    assert.lengthOf(path, maxSocketPathBytes)
    yield* ping(path)
    const error = yield* Effect.flip(pongs({ root: `${longest}r`, name }))
    assert.strictEqual(error._tag, "SocketUnusable")
    assert.match(error.message, /may have \d+ bytes, and this has \d+\. Choose a shorter root/)
  })
)

it.scoped("SO-73: a socket that nobody answers at is replaced", () =>
  Effect.gen(function* () {
    const root = yield* withFolder
    yield* leaveSocket(join(root, name))
    assert.isTrue(lstatSync(join(root, name)).isSocket())
    const { path } = yield* pongs({ root, name })
    yield* ping(path)
    assert.deepStrictEqual(readdirSync(join(root, "agent")), ["coder.sock"])
  })
)

it.scoped("SO-73: one that answers is SocketBusy, and goes on answering", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const { path } = yield* pongs({ root, name })
    const error = yield* Effect.flip(Effect.scoped(pongs({ root, name })))
    assert.strictEqual(error._tag, "SocketBusy")
    yield* ping(path)
    assert.deepStrictEqual(readdirSync(join(root, "agent")), ["coder.sock"])
  })
)

it.scoped("SO-73: of many servers that find the same dead socket, one gets the path", () =>
  Effect.gen(function* () {
    for (let round = 0; round < 10; round++) {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const root = yield* withFolder
          yield* leaveSocket(join(root, name))
          const started = yield* Effect.all(
            Array.from({ length: 8 }, () => Effect.either(pongs({ root, name }))),
            { concurrency: "unbounded" }
          )
          for (const lost of started.filter(Either.isLeft)) assert.strictEqual(lost.left._tag, "SocketBusy")
          assert.lengthOf(started.filter(Either.isRight), 1)
          yield* ping(join(root, name))
          assert.deepStrictEqual(readdirSync(join(root, "agent")), ["coder.sock"])
        })
      )
    }
  })
)

it.scoped("SO-73: what is no socket is refused and left alone", () =>
  Effect.gen(function* () {
    const root = yield* withFolder
    const path = join(root, name)
    const things: ReadonlyArray<readonly [string, () => void]> = [
      ["file.sock", () => writeFileSync(join(root, "agent/file.sock"), "mine")],
      ["folder.sock", () => mkdirSync(join(root, "agent/folder.sock"))],
      ["link.sock", () => symlinkSync(path, join(root, "agent/link.sock"))]
    ]
    for (const [thing, put] of things) {
      put()
      const error = yield* Effect.flip(pongs({ root, name: `agent/${thing}` }))
      assert.match(error.message, /not a socket\. Move it away/)
    }
    assert.strictEqual(readFileSync(join(root, "agent/file.sock"), "utf8"), "mine")
    assert.deepStrictEqual(readdirSync(join(root, "agent")), ["file.sock", "folder.sock", "link.sock"])
  })
)

it.scoped("SO-74: the socket goes with its scope, and so do its clients' connections", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const scope = yield* Scope.make()
    const ended = yield* Deferred.make<void>()
    const { path } = yield* listen({ root, name }, (connection) =>
      Effect.onInterrupt(answerPongs(connection), () => Deferred.succeed(ended, undefined))
    ).pipe(Scope.extend(scope))
    const client = yield* connectTo(path)
    yield* client.send('{"op":"ping"}\n')
    yield* client.next
    yield* Scope.close(scope, Exit.void)
    yield* Deferred.await(ended)
    assert.deepStrictEqual(yield* client.rest, [])
    assert.deepStrictEqual(readdirSync(join(root, "agent")), [])
  })
)

it.scoped("SO-74: a socket that another has put in its place stays", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const first = yield* Scope.make()
    const { path } = yield* pongs({ root, name }).pipe(Scope.extend(first))
    yield* Effect.sync(() => writeFileSync(`${path}.new`, "other"))
    yield* Effect.promise(() => import("node:fs/promises").then((fs) => fs.rename(`${path}.new`, path)))
    yield* Scope.close(first, Exit.void)
    assert.strictEqual(readFileSync(path, "utf8"), "other")
  })
)

it.scoped("SO-76: beyond the bound a client is told EBUSY; when one has gone there is room again", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const left = yield* Deferred.make<void>()
    const { connections, path } = yield* listen({ root, name, maxConnections: 2 }, (connection) =>
      Effect.zipRight(answerPongs(connection), connection.id === 1 ? Deferred.succeed(left, undefined) : Effect.void)
    )
    const [one, two] = [yield* connectTo(path), yield* connectTo(path)]
    for (const client of [one, two]) {
      yield* client.send('{"op":"ping"}\n')
      assert.deepStrictEqual(yield* client.next, { type: "pong" })
    }
    assert.strictEqual(yield* connections, 2)
    const third = yield* connectTo(path)
    yield* third.send('{"op":"ping"}\n')
    const [told, ...more] = yield* third.rest
    assert.deepInclude(told, { type: "error", code: "EBUSY" })
    assert.deepStrictEqual(more, [])
    yield* one.end
    yield* Deferred.await(left)
    assert.deepStrictEqual(yield* one.rest, [])
    yield* one.closed
    yield* ping(path)
    yield* two.send('{"op":"ping","id":"still"}\n')
    assert.deepStrictEqual(yield* two.next, { type: "pong", id: "still" })
  })
)

it.scoped("SO-77: a fault in one client's handler ends that client alone, with an EIO", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const { path } = yield* listen({ root, name }, (connection) =>
      connection.id === 1 ? Effect.dieMessage("broken") : answerPongs(connection)
    )
    const broken = yield* connectTo(path)
    const [last, ...more] = yield* broken.rest
    assert.deepInclude(last, { type: "error", code: "EIO" })
    assert.deepStrictEqual(more, [])
    yield* ping(path)
  })
)

it.scoped("SO-76: a hundred clients at once are each answered what they asked", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const { path } = yield* pongs({ root, name })
    const clients = yield* Effect.replicateEffect(connectTo(path), 100, { concurrency: "unbounded" })
    for (let round = 0; round < 5; round++) {
      yield* Effect.forEach(clients, (client, at) => client.send(`{"op":"ping","id":"c${at}r${round}"}\n`))
    }
    yield* Effect.forEach(
      clients,
      (client, at) =>
        Effect.gen(function* () {
          for (let round = 0; round < 5; round++) {
            assert.deepStrictEqual(yield* client.next, { type: "pong", id: `c${at}r${round}` })
          }
        }),
      { concurrency: "unbounded" }
    )
  })
)
