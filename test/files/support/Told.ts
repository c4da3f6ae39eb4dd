/** A run in drafts, with a picture and an answer. */
import { ActivityID, MessageID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"

/** A run that answers with this text. */
export const told = (words: string, name = "told") => {
  const [messageID, assistantMessageID] = [MessageID.make(`msg_asked_${name}`), MessageID.make(`msg_${name}`)]
  const picture = `data:image/png;base64,${Buffer.from(words).toString("base64")}`
  const [prompt, at, model] = [
    { text: words, files: [{ uri: picture, mime: "image/png" }] },
    { assistantMessageID },
    { providerID: "p", id: "m" }
  ]
  const tokens = { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } }
  return [
    draft("session.next.prompt.admitted", { messageID, prompt, delivery: "queue" }),
    draft("session.next.activity.started", { activityID: ActivityID.make(`act_${name}`), trigger: "queue" }),
    draft("session.next.prompt.promoted", { messageID, prompt, timeCreated: 7 }),
    draft("session.next.step.started", { ...at, agent: "build", model }),
    draft("session.next.text.started", { ...at, textID: "t" }),
    draft("session.next.text.ended", { ...at, textID: "t", text: words }),
    draft("session.next.step.ended", { ...at, finish: "stop", cost: 0.1, tokens }),
    draft("session.next.activity.settled", { activityID: ActivityID.make(`act_${name}`), outcome: "completed" })
  ]
}
