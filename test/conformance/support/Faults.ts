/** The faults that the suite has to find, each with the clause that it breaks. */
import { type Asked, type Fault, header, setHeader } from "./Broken.ts"

const isEvent = (text: string): boolean => /^event: event$|"frame":"event"/m.test(text)

/** Changes the JSON of a body, if it has one. */
const inBody = (asked: Asked, change: (body: Record<string, unknown>) => void): void => {
  if (!asked.body.startsWith("{") || !asked.body.endsWith("}")) return
  const body = JSON.parse(asked.body) as Record<string, unknown>
  change(body)
  asked.body = JSON.stringify(body)
}

/** A cursor with another last number. */
const moved = (cursor: string, by: number): string => cursor.replace(/-?\d+$/, (digits) => String(Number(digits) + by))

const ofEvents = ({ url }: Asked): boolean => url.pathname.endsWith("/events")
const ofSession = (asked: Asked): boolean => ofEvents(asked) && asked.url.pathname !== "/events"

/** Takes a token away from the query, or a cursor, and gives it back changed. */
const changing = (name: string, change: (value: string, asked: Asked) => string | undefined) => (asked: Asked) => {
  const value = asked.url.searchParams.get(name)
  if (value === null) return
  const changed = change(value, asked)
  if (changed === undefined) asked.url.searchParams.delete(name)
  else asked.url.searchParams.set(name, changed)
}

export interface NamedFault extends Fault {
  readonly clause: string
  readonly name: string
  /** The server leaves requests without an end: the suite's time for a law ends them. */
  readonly hangs?: true
}

/** The faults of a server with these tokens. Each is made anew, since some remember what they saw. */
export const faults = (token: string, readToken: string): ReadonlyArray<NamedFault> => {
  const trusted = (asked: Asked) => setHeader(asked, "authorization", `Bearer ${token}`)
  const receipts = new Map<string, string>()
  const flying = new Set<unknown>()
  let held: ReadonlyArray<string> = []
  return [
    {
      clause: "HT-20",
      name: "asks for no token at streams",
      asks: (asked) => (ofEvents(asked) ? trusted(asked) : undefined)
    },
    {
      clause: "HT-20",
      name: "takes a token of the right length",
      asks: (asked) =>
        header(asked, "authorization")?.length === `Bearer ${token}`.length ? trusted(asked) : undefined
    },
    {
      clause: "HT-20",
      name: "takes a token from the query",
      asks: (asked) => {
        if (asked.url.searchParams.get("token") === token) trusted(asked)
        asked.url.searchParams.delete("token")
      }
    },
    {
      clause: "HT-20",
      name: "does not say which token it needs",
      answers: ({ headers }) => delete headers["www-authenticate"]
    },
    {
      clause: "HT-20",
      name: "repeats a wrong token",
      answers: (answered, asked) => {
        if (answered.status === 401)
          answered.body = answered.body.replace("valid token", `valid token, not ${header(asked, "authorization")}`)
      }
    },
    {
      clause: "HT-21",
      name: "lets readers prompt",
      asks: (asked) => (header(asked, "authorization") === `Bearer ${readToken}` ? trusted(asked) : undefined)
    },
    { clause: "HT-24", name: "answers pages of every origin", asks: (asked) => setHeader(asked, "origin") },
    {
      clause: "HT-24",
      name: "permits every origin by a header",
      answers: ({ headers }) => void (headers["access-control-allow-origin"] = "*")
    },
    { clause: "HT-24", name: "answers for every host", asks: (asked) => setHeader(asked, "host", asked.url.host) },
    {
      clause: "HT-15",
      name: "takes the first of two tokens",
      asks: (asked) => setHeader(asked, "authorization", header(asked, "authorization"))
    },
    {
      clause: "HT-3",
      name: "answers an invalid id as that of no session",
      answers: (answered) => {
        if (answered.body.includes('"path":["sessionID"]')) answered.status = 404
      }
    },
    {
      clause: "HT-3",
      name: "ignores unknown fields",
      asks: (asked) => inBody(asked, (body) => delete body["misspelt"])
    },
    { clause: "HT-3", name: "ignores unknown parameters", asks: changing("afer", () => undefined) },
    {
      clause: "HT-3",
      name: "does not name what is wrong",
      answers: (answered) =>
        void (answered.body = answered.body.replace(/"issues":\[.*?\],"message"/, '"issues":[],"message"'))
    },
    {
      clause: "HT-501",
      name: "fails at nested JSON",
      answers: (answered, { body }) => {
        if (body.startsWith("[[")) answered.status = 500
      }
    },
    {
      clause: "HT-502",
      name: "says that a method is no endpoint",
      answers: (answered) => {
        if (answered.status === 405)
          Object.assign(answered, { status: 404, body: answered.body.replace("MethodNotAllowed", "EndpointNotFound") })
      }
    },
    {
      clause: "HT-10",
      name: "gives errors without a message",
      answers: (answered) => void (answered.body = answered.body.replaceAll('"message"', '"text"'))
    },
    {
      clause: "HT-10",
      name: "answers an error with 200",
      answers: (answered) => {
        if (answered.status === 404) answered.status = 200
      }
    },
    { clause: "HT-12", name: "ignores idempotency keys", asks: (asked) => setHeader(asked, "idempotency-key") },
    {
      clause: "HT-12",
      name: "takes one key for one content",
      asks: (asked) => {
        const key = header(asked, "idempotency-key")
        if (key !== undefined) setHeader(asked, "idempotency-key", `${key}${asked.body.length}`)
      }
    },
    { clause: "HT-12", name: "ignores ids", asks: (asked) => inBody(asked, (body) => delete body["id"]) },
    {
      clause: "HT-12",
      name: "takes another delivery for a repetition",
      asks: (asked) => inBody(asked, (body) => delete body["delivery"])
    },
    {
      clause: "HT-12",
      name: "answers a conflict with the first receipt",
      answers: (answered, asked) => {
        const { id } = /"id":"(?<id>msg_[^"]+)"/.exec(asked.body)?.groups ?? {}
        if (id === undefined) return
        if (answered.status === 200) receipts.set(id, answered.body)
        else Object.assign(answered, { status: 200, body: receipts.get(id) ?? answered.body })
      }
    },
    {
      clause: "HT-12",
      name: "admits concurrent repetitions again",
      asks: (asked) =>
        inBody(asked, (body) => {
          if (flying.has(body["id"])) delete body["id"]
          else flying.add(body["id"])
        })
    },
    {
      clause: "HT-40",
      name: "leaves an event out",
      sends: ({ number, text }) => (isEvent(text) && number === 2 ? [] : [text])
    },
    {
      clause: "HT-40",
      name: "sends an event twice",
      sends: ({ number, text }) => (isEvent(text) && number === 2 ? [text, text] : [text])
    },
    {
      clause: "HT-40",
      name: "changes the order of two events",
      hangs: true,
      sends: ({ number, text }) => {
        if (number !== 2) return number === 3 ? [text, ...held] : [text]
        held = [text]
        return []
      }
    },
    {
      clause: "HT-40",
      name: "begins with the event of the cursor",
      asks: changing("after", (cursor) => moved(cursor, -1))
    },
    {
      clause: "HT-40",
      name: "ignores Last-Event-ID",
      asks: (asked) => setHeader(asked, "last-event-id")
    },
    {
      clause: "HT-40",
      name: "prefers Last-Event-ID to a cursor",
      asks: (asked) => {
        if (header(asked, "last-event-id") !== undefined) asked.url.searchParams.delete("after")
      }
    },
    { clause: "HT-40", name: "gives events no cursors", sends: ({ text }) => [text.replace(/^id: .*\n/m, "")] },
    { clause: "HT-40", name: "gives events one cursor", sends: ({ text }) => [text.replace(/^(id: .*?)\d+$/m, "$11")] },
    {
      clause: "HT-40",
      name: "says that a stream is text",
      begins: (headers) => void (headers["content-type"] = "text/plain")
    },
    {
      clause: "HT-40",
      name: "leaves the creation out",
      asks: changing(
        "follow",
        (follow, { url }) => (url.searchParams.set("after", url.searchParams.get("after") ?? "0"), follow)
      )
    },
    {
      clause: "HT-40",
      name: "ends where it should follow",
      sends: ({ isPastSeam, text }) => (isPastSeam && !text.includes("event: end") ? undefined : [text])
    },
    {
      clause: "HT-40",
      name: "loses the first event behind the seam",
      sends: ({ isPastSeam, number, text }) => (isPastSeam && isEvent(text) && number < 12 ? [] : [text]),
      hangs: true
    },
    {
      clause: "HT-40",
      name: "sends an event behind the seam twice",
      sends: ({ isPastSeam, text }) => (isPastSeam && isEvent(text) ? [text, text] : [text])
    },
    {
      clause: "HT-40",
      name: "holds an event back until the next one",
      hangs: true,
      sends: ({ isPastSeam, text }) => {
        if (!isPastSeam || !isEvent(text)) return [text]
        const [before, now] = [held, [text]]
        held = now
        return before
      }
    },
    { clause: "HT-40", name: "never answers", hangs: true, asks: () => false },
    { clause: "HT-40", name: "sends comments in place of frames", hangs: true, sends: () => [": still here"] },
    {
      clause: "HT-41",
      name: "takes no number as a cursor",
      asks: changing("after", (cursor) => (/^-?\d+$/.test(cursor) ? "x" : cursor))
    },
    { clause: "HT-41", name: "ignores the life of a session", asks: changing("incarnation", () => undefined) },
    {
      clause: "HT-42",
      name: "takes the cursor of another database",
      asks: changing("after", (cursor) => cursor.replace(/^d1\.00000000\..*/, "-1"))
    },
    {
      clause: "HT-42",
      name: "takes any text as a cursor",
      asks: changing("after", (cursor) => (cursor === "nonsense" ? "-1" : cursor))
    },
    {
      clause: "HT-42",
      name: "waits at a cursor that is ahead",
      asks: changing("after", (cursor, { url }) => {
        if (cursor === "1000000") url.searchParams.delete("follow")
        return cursor === "1000000" ? "0" : cursor
      })
    },
    {
      clause: "HT-42",
      name: "takes the feed's cursor in a session",
      asks: (asked) =>
        ofSession(asked)
          ? changing("after", (cursor) => (/^d1\.\w+\.\d+$/.test(cursor) ? "0" : cursor))(asked)
          : undefined
    },
    {
      clause: "HT-43",
      name: "begins with the first event below the floor",
      asks: changing("after", (cursor) => (cursor === "-1000" ? "-1" : cursor))
    },
    {
      clause: "HT-44",
      name: "has no lines of JSON",
      asks: (asked) => (header(asked, "accept") === "application/x-ndjson" ? setHeader(asked, "accept") : undefined)
    },
    {
      clause: "HT-44",
      name: "has lines of JSON without a seam",
      sends: ({ text }) => (text.includes('"frame":"replay.complete"') ? [] : [text])
    },
    {
      clause: "HT-45",
      name: "sends no seam",
      sends: ({ text }) => (text.includes("event: replay.complete") ? [] : [text])
    },
    {
      clause: "HT-45",
      name: "sends two seams",
      sends: ({ text }) => (text.includes("event: replay.complete") ? [text, text] : [text])
    },
    {
      clause: "HT-45",
      name: "sends the seam first",
      sends: ({ number, text }) =>
        number === 0
          ? [text, 'event: replay.complete\ndata: {"cursor":"x"}']
          : text.includes("event: replay.complete")
            ? []
            : [text]
    },
    {
      clause: "HT-45",
      name: "ends without saying so",
      sends: ({ text }) => (text.includes("event: end") ? undefined : [text])
    },
    {
      clause: "HT-45",
      name: "ends without a cursor",
      sends: ({ text }) => [text.includes("event: end") ? text.replace(/,"cursor":"[^"]*"/, "") : text]
    },
    {
      clause: "HT-53",
      name: "has a head that is one behind",
      answers: (answered, { url }) => {
        if (url.pathname.endsWith("/head"))
          answered.body = answered.body.replace(
            /"cursor":"([^"]*)"/,
            (_, cursor: string) => `"cursor":"${moved(cursor, -1)}"`
          )
      }
    },
    { clause: "HT-54", name: "ignores types", asks: changing("type", () => undefined) },
    {
      clause: "HT-54",
      name: "has the cursor of the last event that it sent",
      sends: ({ asked, text }) => [
        asked.url.searchParams.has("type") && text.includes("event: end") ? text.replace(/\d+"\}$/, '0"}') : text
      ]
    },
    {
      clause: "HT-51",
      name: "leaves sessions out of the feed",
      sends: ({ asked, number, text }) =>
        asked.url.pathname === "/events" && isEvent(text) && number % 2 === 1 ? [] : [text]
    },
    {
      clause: "HT-51",
      name: "gives the feed other positions",
      sends: ({ asked, text }) => [
        asked.url.pathname === "/events" ? text.replace(/"position":\d+/, '"position":1') : text
      ]
    },
    {
      clause: "HT-51",
      name: "has a feed that does not go on from its cursors",
      asks: (asked) =>
        asked.url.pathname === "/events" ? changing("after", (cursor) => moved(cursor, -1))(asked) : undefined
    },
    {
      clause: "HT-1",
      name: "repeats events in the pages of a history",
      asks: (asked) =>
        asked.url.pathname.endsWith("/history") ? changing("after", (cursor) => moved(cursor, -1))(asked) : undefined
    },
    {
      clause: "HT-2",
      name: "has no document",
      answers: (answered, { url }) => {
        if (url.pathname === "/openapi.json") answered.status = 404
      }
    }
  ]
}
