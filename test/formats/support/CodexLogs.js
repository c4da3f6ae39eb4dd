export const threadID = "01970000-0000-7000-8000-000000000001";
const start = Date.parse("2026-02-01T10:00:00.000Z");
/** Numbers the records of a rollout, for their times. */
export const clock = () => {
    let at = 0;
    const line = (type, payload) => ({
        timestamp: new Date(start + at++ * 1_000).toISOString(),
        type,
        payload
    });
    return {
        line,
        meta: (more = {}) => line("session_meta", {
            id: threadID,
            timestamp: new Date(start).toISOString(),
            cwd: "/work/shop",
            originator: "codex_cli_rs",
            cli_version: "0.128.0",
            source: "cli",
            model_provider: "openai",
            ...more
        }),
        turn: (model, more = {}) => line("turn_context", { cwd: "/work/shop", model, effort: "high", ...more }),
        item: (payload) => line("response_item", payload),
        event: (type, more = {}) => line("event_msg", { type, ...more }),
        tokens: (total, last = total) => line("event_msg", {
            type: "token_count",
            info: { total_token_usage: counts(total), last_token_usage: counts(last), model_context_window: 272_000 },
            rate_limits: null
        })
    };
};
const counts = ({ cached = 0, input, output, reasoning = 0 }) => ({
    input_tokens: input,
    cached_input_tokens: cached,
    output_tokens: output,
    reasoning_output_tokens: reasoning,
    total_tokens: input + output
});
export const message = (role, words) => ({
    type: "message",
    role,
    content: [{ type: role === "assistant" ? "output_text" : "input_text", text: words }]
});
export const reasoning = (words) => ({
    type: "reasoning",
    summary: [{ type: "summary_text", text: words }],
    content: null,
    encrypted_content: "gAAAAAencrypted"
});
export const call = (id, name, args) => ({
    type: "function_call",
    name,
    arguments: JSON.stringify(args),
    call_id: id
});
export const output = (id, given) => ({
    type: "function_call_output",
    call_id: id,
    output: given
});
export const environment = "<environment_context>\n  <cwd>/work/shop</cwd>\n  <shell>bash</shell>\n</environment_context>";
/** A healthy rollout of `turns` prompts, each answered with reasoning, a call and a text. */
export function* rollout(turns, outputSizeBytes = 400) {
    const { event, item, meta, tokens, turn } = clock();
    yield meta();
    yield item(message("user", environment));
    let total = { input: 0, cached: 0, output: 0, reasoning: 0 };
    const spend = () => {
        const last = { input: 100, cached: 40, output: 20, reasoning: 5 };
        total = {
            input: total.input + last.input,
            cached: total.cached + last.cached,
            output: total.output + last.output,
            reasoning: total.reasoning + last.reasoning
        };
        return tokens(total, last);
    };
    for (let number = 0; number < turns; number++) {
        const words = `Prompt ${number}: look at the file`;
        yield turn("gpt-5.5");
        yield event("task_started", { turn_id: `turn-${number}` });
        yield item(message("user", words));
        yield event("user_message", { message: words, kind: "plain" });
        yield event("agent_reasoning", { text: `Think about ${number}` });
        yield item(reasoning(`Think about ${number}`));
        yield item(call(`call_${number}`, "shell", { command: ["bash", "-lc", `cat ${number}`] }));
        yield spend();
        yield item(output(`call_${number}`, `Exit code: 0\nOutput:\n${`${number} `.repeat(outputSizeBytes / 4)}`));
        yield event("agent_message", { message: `Answer ${number}: done` });
        yield item(message("assistant", `Answer ${number}: done`));
        yield spend();
        yield tokens(total, { input: 100, cached: 40, output: 20, reasoning: 5 });
        yield event("task_complete", { turn_id: `turn-${number}`, last_agent_message: `Answer ${number}: done` });
    }
}
/** A rollout from before September 2025: a header, then bare items without times. */
export const bareRollout = [
    { id: threadID, timestamp: "2025-07-01T12:00:00.000Z", instructions: "Be brief.", git: { branch: "main" } },
    { record_type: "state" },
    message("user", "<environment_context>\nCurrent working directory: /work/old\nApproval policy: never\n</environment_context>"),
    message("user", "Which files are here?"),
    { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "List them" }] },
    { type: "local_shell_call", call_id: "call_1", status: "completed", action: { type: "exec", command: ["ls"] } },
    output("call_1", '{"output":"a.ts\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}'),
    { record_type: "state" },
    message("assistant", "One: a.ts."),
    { ...call("call_2", "shell", { command: ["false"] }), id: "fc_2" },
    output("call_2", { content: "it failed", success: false }),
    message("assistant", "It failed.")
];
/** A rollout from before they were JSON Lines, as one object. */
export const documentOf = (items) => ({
    session: { timestamp: "2025-04-20T08:00:00.000Z", id: threadID, instructions: "Be brief." },
    items
});
/** Such a rollout with its calls as the versions of April 2025 wrote them. */
export const document = documentOf([
    message("user", "Which files {are} here?"),
    { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: 'List "them"' }], duration_ms: 12 },
    { ...call("call_1", "shell", { command: ["ls", "{"] }), id: "fc_1", status: "completed" },
    output("call_1", '{"output":"a.ts\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}'),
    message("assistant", "One:\na.ts."),
    message("system", "The context is almost full."),
    message("user", "Thanks")
]);
//# sourceMappingURL=CodexLogs.js.map