// The official client for Node.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';

const { OpenAI } = createRequire(`${process.env.LM_MODULES}/`)('openai');
const client = new OpenAI({ baseURL: process.env.LM_URL, apiKey: process.env.LM_KEY, maxRetries: 0 });
const { question, call, result, tools } = JSON.parse(readFileSync(new URL('weather.json', import.meta.url)));
const messages = [{ role: 'user', content: question }];
const request = { model: 'pocket', messages, tools, temperature: 0, max_completion_tokens: 200 };
const named = { type: 'function', function: { name: 'predict_weather' } };

const ways = {
    whole: async (body) => (await client.chat.completions.create(body)).choices[0],
    streamed: async (body) => (await client.chat.completions.stream(body).finalChatCompletion()).choices[0],
};

function checkCall(choice, name) {
    assert.equal(choice.finish_reason, 'tool_calls');
    assert.deepEqual(choice.message.tool_calls.map((call) => call.function.name), [name]);
    assert.deepEqual(JSON.parse(choice.message.tool_calls[0].function.arguments), { location: 'Auckland, NZ', format: 'celsius' });
}

for (const [way, send] of Object.entries(ways)) {
    for (const [choice, name] of [['auto', 'get_current_weather'], ['required', 'get_current_weather'], [named, 'predict_weather']]) {
        test(`tool choice ${choice.type ? 'named' : choice}, ${way}`, async () => {
            checkCall(await send({ ...request, tool_choice: choice }), name);
        });
    }
    test(`tool choice none, ${way}`, async () => {
        const choice = await send({ ...request, tool_choice: 'none' });
        assert.equal(choice.finish_reason, 'stop');
        assert.ok(choice.message.content && !choice.message.tool_calls);
    });
    test(`tool result, ${way}`, async () => {
        const { message } = await send({ ...request, tool_choice: 'required' });
        const assistant = [message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: result }];
        const documented = [{ role: 'tool_call', content: call }, { role: 'tool', content: result }];
        for (const history of [assistant, documented]) {
            const choice = await send({ ...request, messages: [...messages, ...history] });
            assert.equal(choice.finish_reason, 'stop');
            assert.match(choice.message.content, /Auckland/);
        }
    });
}

test('tools that are run by the client', async () => {
    const runnable = tools.map((tool) => ({ ...tool, function: { ...tool.function, function: () => result, parse: JSON.parse } }));
    const runner = client.chat.completions.runTools({ ...request, tools: runnable });
    assert.match(await runner.finalContent(), /Auckland/);
});

test('response format', async () => {
    const schema = { type: 'object', properties: { urgent: { type: 'boolean' } }, required: ['urgent'], additionalProperties: false };
    const format = { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } };
    const completion = await client.chat.completions.parse({ model: 'pocket', messages, response_format: format });
    assert.equal(typeof JSON.parse(completion.choices[0].message.content).urgent, 'boolean');
});

test('embeddings and models', async () => {
    const { data } = await client.embeddings.create({ model: 'pocket', input: ['one', 'two'] });
    assert.ok(data.length === 2 && data[0].embedding.every(Number.isFinite));
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    assert.deepEqual(ids, ['pocket', 'gpt-4o-mini']);
});

test('errors', async () => {
    const body = { model: 'pocket', messages };
    await assert.rejects(client.chat.completions.create({ ...body, model: 'gpt-9' }), OpenAI.NotFoundError);
    await assert.rejects(client.chat.completions.create({ ...body, temperature: -9 }), OpenAI.BadRequestError);
    await assert.rejects(client.chat.completions.create({ ...body, temperature: -9, stream: true }), OpenAI.BadRequestError);
    await assert.rejects(client.withOptions({ apiKey: 'wrong' }).models.list(), OpenAI.AuthenticationError);
});

test('a stream that is aborted', async () => {
    const stream = await client.chat.completions.create({ ...request, tool_choice: 'none', stream: true });
    for await (const _ of stream) break;
    checkCall(await ways.whole({ ...request, tool_choice: 'required' }), 'get_current_weather');
});
