/**
 * Method: Compose starts the services of `deploy/compose.yaml`, with a slow model beside them. Nodes are killed, ended and cut
 * off from the database in the middle of an answer, and readers follow it through the proxy. `DAYBOOK_NO_BUILD=1` takes the
 * image `daybook` as it is.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { randomUUID } from "node:crypto"
import { setTimeout } from "node:timers/promises"
import { Schema } from "effect"
import { lacks } from "../support/Parts.ts"
import * as ComposeStack from "./support/ComposeStack.ts"

const Frame = Schema.parseJson(
  Schema.Struct({
    frame: Schema.String,
    cursor: Schema.optional(Schema.String),
    event: Schema.optional(Schema.Struct({ seq: Schema.Int, type: Schema.String, data: Schema.Unknown })),
    live: Schema.optional(Schema.Struct({ type: Schema.String }))
  })
)
type Frame = typeof Frame.Type
const decodeFrame = Schema.decodeUnknownSync(Frame)

const Nodes = Schema.Struct({
  nodes: Schema.Array(Schema.Struct({ address: Schema.String, sessions: Schema.Array(Schema.String) }))
})
const decodeNodes = Schema.decodeUnknownSync(Nodes)

const outcomeOf = ({ event }: Frame): string | undefined =>
  event?.type === "session.next.activity.settled"
    ? Schema.decodeUnknownSync(Schema.Struct({ outcome: Schema.String }))(event.data).outcome
    : undefined

/** Does it again until it returns something. */
const until = async <A>(look: () => Promise<A | undefined>): Promise<A> => {
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    await setTimeout(200)
  }
}

describe.skipIf(lacks("compose"))("deploy/compose.yaml", { timeout: 600_000 }, () => {
  let stack: ComposeStack.Stack
  let token = ""

  /** A request through the proxy. One that no node answers within ten seconds fails. */
  const request = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(stack.url + path, { method, headers, signal: AbortSignal.timeout(10_000), ...sent })
    const text = await response.text()
    assert.isBelow(response.status, 300, `${method} ${path}: ${text}`)
    return JSON.parse(text)
  }

  const living = async () => decodeNodes(await request("GET", "/nodes")).nodes

  /** All nodes run, and each answers: what a test ended begins again. */
  const whole = async () => {
    for (const node of ComposeStack.nodes) await stack.docker("start", await stack.container(node))
    await until(async () => {
      const states = await Promise.all(
        [...ComposeStack.nodes, "postgres"].map(async (name) =>
          stack.docker("inspect", "--format", "{{.State.Health.Status}}", await stack.container(name))
        )
      )
      return states.every((state) => state === "healthy") && (await living()).length === 3 ? true : undefined
    })
  }

  /** The frames of a session, over as many connections as it takes, until its activity has ended. */
  const follow = async (id: string, heard: (frame: Frame) => void): Promise<ReadonlyArray<Frame>> => {
    const frames: Array<Frame> = []
    for (;;) {
      const after = frames.findLast(({ cursor }) => cursor !== undefined)?.cursor
      const path = `/sessions/${id}/events?live=1${after === undefined ? "" : `&after=${after}`}`
      try {
        const headers = { authorization: `Bearer ${token}`, accept: "application/x-ndjson" }
        const response = await fetch(stack.url + path, { headers })
        assert.strictEqual(response.status, 200)
        let rest = ""
        for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
          const lines = (rest + part).split("\n")
          rest = lines.pop() ?? ""
          for (const line of lines) {
            if (line === "") continue
            const frame = decodeFrame(line)
            frames.push(frame)
            heard(frame)
            if (outcomeOf(frame) !== undefined) return frames
          }
        }
      } catch (error) {
        // Its node died.
        if (!(error instanceof TypeError)) throw error
      }
    }
  }

  interface Answer {
    /** The frames of each reader. */
    readonly readers: ReadonlyArray<ReadonlyArray<Frame>>
    readonly id: string
  }

  /** Prompts, does something in the middle of the answer, and follows it to its end. The node that runs it is found first. */
  const during = async (
    words: number,
    disturb: (runner: ComposeStack.NodeName, id: string) => Promise<unknown>
  ): Promise<Answer> => {
    const id = `ses_${randomUUID()}`
    await request("POST", "/sessions", { id, location: { directory: "/work" } })
    let begun: () => void = () => undefined
    const begins = new Promise<void>((resolve) => void (begun = resolve))
    // So many that each node has some of them.
    const reading = Array.from({ length: 9 }, () => follow(id, ({ live }) => live?.type.endsWith(".delta") && begun()))
    await request("POST", `/sessions/${id}/prompts`, { prompt: { text: `count to ${words}` }, delivery: "queue" })
    await begins
    const runner = await until(async () => {
      const address = (await living()).find(({ sessions }) => sessions.includes(id))?.address
      return ComposeStack.nodes.find((name) => address?.startsWith(`${name}:`))
    })
    await disturb(runner, id)
    return { id, readers: await Promise.all(reading) }
  }

  /** Each reader heard each event once, in order, and how it ended. */
  const heardBy = ({ readers }: Answer) =>
    readers.map((frames) => {
      const events = frames.flatMap(({ event }) => (event === undefined ? [] : [event]))
      assert.deepStrictEqual(
        events.map(({ seq }) => seq),
        events.map((_, at) => at)
      )
      return frames.map(outcomeOf).find((outcome) => outcome !== undefined)
    })

  const all = (outcome: string) => Array.from({ length: 9 }, () => outcome)

  const signal = async (words: ReadonlyArray<string>, service: string) =>
    stack.docker(...words, await stack.container(service))

  beforeAll(async () => {
    stack = await ComposeStack.make()
    await stack.compose("up", "--detach", process.env["DAYBOOK_NO_BUILD"] === "1" ? "--no-build" : "--build")
    token = await until(() =>
      stack.compose("exec", "-T", "node1", "daybook", "token", "--scope", "admin").catch(() => undefined)
    )
    await until(() => request("GET", "/health").catch(() => undefined))
    await whole()
  }, 1_200_000)

  afterAll(() => stack?.end(), 120_000)

  it("CL-826: one command without settings starts three nodes and a proxy; they run as a user without rights and share a token", async () => {
    assert.deepStrictEqual(
      (await living()).map(({ address }) => address),
      ["node1:4311", "node2:4311", "node3:4311"]
    )
    for (const node of ComposeStack.nodes) {
      assert.strictEqual(await stack.compose("exec", "-T", node, "id", "-u"), "10001")
      assert.include(await stack.compose("exec", "-T", node, "daybook", "nodes"), "node3:4311  up")
    }
    const page = await fetch(stack.url)
    assert.include(await page.text(), "<script")
  })

  it("CL-827, CU-29: a node that dies is not asked, and readers of an answer of another node hear all of it once", async () => {
    const answer = await during(80, async (runner) => {
      await signal(["kill"], ComposeStack.nodes.find((name) => name !== runner) ?? "")
      for (let each = 0; each < 30; each += 1) await request("GET", "/health")
    })
    assert.deepStrictEqual(heardBy(answer), all("completed"))
    await whole()
  })

  it("CL-827, CU-25: the turn of a node that dies goes on for all its readers, and the next prompt is answered", async () => {
    const answer = await during(100, (runner) => signal(["kill"], runner))
    assert.deepStrictEqual(heardBy(answer), all("completed"))
    const asked = await request("POST", `/sessions/${answer.id}/ask`, {
      id: `msg_${randomUUID()}`,
      prompt: { text: "count to 3" }
    })
    assert.include(JSON.stringify(asked), "1 2 3")
    await whole()
  })

  it("CL-827, CU-28: while each node ends in turn, an answer goes on to its end", async () => {
    const answer = await during(150, async () => {
      for (const node of ComposeStack.nodes) {
        await signal(["stop"], node)
        await whole()
      }
    })
    assert.deepStrictEqual(heardBy(answer), all("completed"))
  })

  it("CL-827, CU-56: while PostgreSQL starts again, an answer goes on to its end", async () => {
    const answer = await during(100, () => signal(["restart"], "postgres"))
    assert.deepStrictEqual(heardBy(answer), all("completed"))
    await whole()
  })
})
