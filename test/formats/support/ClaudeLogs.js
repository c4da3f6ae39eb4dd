/**
 * Makes logs of Claude Code: records by their fields, and sessions of any size in the forms of several versions. Written
 * from descriptions of the format; no log of a person is copied.
 */
export const sessionID = "5d0c1f7e-6a1b-4c2d-8e3f-001122334455";
/** A uuid from a number: the same number gives the same uuid. */
export const uuid = (number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
const start = Date.parse("2026-03-01T09:00:00.000Z");
const envelope = (number, parent, more) => ({
    parentUuid: parent === null ? null : uuid(parent),
    isSidechain: false,
    userType: "external",
    cwd: "/work/shop",
    sessionId: sessionID,
    version: "2.1.72",
    gitBranch: "main",
    ...more,
    uuid: uuid(number),
    timestamp: new Date(start + number * 1_000).toISOString()
});
/** A person's prompt, or blocks that a user record holds. */
export const user = (number, parent, content, more = {}) => envelope(number, parent, { type: "user", message: { role: "user", content }, ...more });
/** One line of an API message. */
export const assistant = (number, parent, messageID, content, { usage = {}, ...more } = {}) => {
    const { stop = null, ...fields } = more;
    return envelope(number, parent, {
        type: "assistant",
        requestId: `req_${messageID}`,
        message: {
            id: messageID,
            type: "message",
            role: "assistant",
            model: "claude-sonnet-4-5-20250929",
            content,
            stop_reason: stop,
            stop_sequence: null,
            usage: {
                input_tokens: usage.input ?? 0,
                cache_creation_input_tokens: usage.cacheWrite ?? 0,
                cache_read_input_tokens: usage.cacheRead ?? 0,
                output_tokens: usage.output ?? 0,
                service_tier: "standard"
            }
        },
        ...fields
    });
};
export const system = (number, parent, subtype, more = {}) => envelope(number, parent, { type: "system", subtype, content: "", level: "info", ...more });
export const attachment = (number, parent, attached) => envelope(number, parent, { type: "attachment", attachment: attached });
export const call = (id, name, input) => ({ type: "tool_use", id, name, input });
export const result = (id, content, more = {}) => ({
    type: "tool_result",
    tool_use_id: id,
    content,
    ...more
});
export const text = (words) => ({ type: "text", text: words });
export const thinking = (words) => ({ type: "thinking", thinking: words, signature: "c2lnbmF0dXJl" });
/** A healthy session of `turns` prompts, each answered with reasoning, two parallel calls and a text. */
export function* session(turns, resultSizeBytes = 400) {
    yield { type: "file-history-snapshot", messageId: uuid(0), snapshot: { trackedFileBackups: {} } };
    let last = null;
    for (let turn = 0; turn < turns; turn++) {
        const at = turn * 10 + 1;
        const [asks, answers] = [`msg_${turn}a`, `msg_${turn}b`];
        const usage = { input: 3, output: 5, cacheRead: 1_000 + turn, cacheWrite: 20 };
        yield user(at, last, `Prompt ${turn}: look at both files`);
        yield assistant(at + 1, at, asks, [thinking(`Think about ${turn}`)], { usage: { ...usage, output: 1 } });
        yield assistant(at + 2, at + 1, asks, [call(`toolu_${turn}a`, "Read", { file_path: `/work/shop/a${turn}.ts` })], {
            usage
        });
        yield assistant(at + 3, at + 2, asks, [call(`toolu_${turn}b`, "Bash", { command: `ls ${turn}` })], {
            usage: { ...usage, output: 40 },
            stop: "tool_use"
        });
        yield user(at + 4, at + 2, [result(`toolu_${turn}a`, `${turn} `.repeat(resultSizeBytes / 4))], {
            toolUseResult: { type: "text", file: { filePath: `a${turn}.ts`, numLines: 3 } },
            sourceToolAssistantUUID: uuid(at + 2)
        });
        yield user(at + 5, at + 3, [result(`toolu_${turn}b`, "a.ts\nb.ts", { is_error: false })]);
        yield assistant(at + 6, at + 5, answers, [text(`Answer ${turn}: done`)], { usage, stop: "end_turn" });
        yield system(at + 7, at + 6, "turn_duration", { durationMs: 1_200 });
        yield { type: "ai-title", aiTitle: "Two files", sessionId: sessionID };
        yield { type: "last-prompt", lastPrompt: `Prompt ${turn}`, leafUuid: uuid(at + 7), sessionId: sessionID };
        last = at + 7;
    }
}
/** Records as the bytes of a file. */
export const bytes = (records) => Buffer.from([...records].map((record) => `${JSON.stringify(record)}\n`).join(""));
//# sourceMappingURL=ClaudeLogs.js.map