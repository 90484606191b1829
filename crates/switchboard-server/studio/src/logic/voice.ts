/** A spoken conversation: the microphone to the service, and its sound to the loudspeaker. */

import { api } from "../api/client";
import { fromPcm16, Resampler, SAMPLE_RATE, toPcm16 } from "./pcm";

export interface VoiceEvent {
  type: string;
  [field: string]: unknown;
}

export class VoiceSession {
  private socket: WebSocket | null = null;
  private context: AudioContext | null = null;
  private stream: MediaStream | null = null;
  private playing = new Set<AudioBufferSourceNode>();
  /** The time at which the sound that has arrived ends. */
  private playedUntil = 0;
  private isStopped = false;

  constructor(private readonly onEvent: (event: VoiceEvent) => void) {}

  async start(team: string, conversation: string, agent: string | null): Promise<void> {
    this.stream = await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true },
    });
    if (this.isStopped) return this.stop();
    const ticket = await api.voiceTicket(team, conversation, agent);
    if (this.isStopped) return;
    this.context = new AudioContext();
    await this.context.audioWorklet.addModule("/assets/microphone.js");
    if (this.isStopped) return;
    const socket = new WebSocket(
      `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/teams/${encodeURIComponent(team)}/realtime`,
      [ticket.protocol, `ticket.${ticket.ticket}`],
    );
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onmessage = (message) => {
      if (typeof message.data === "string") this.take(JSON.parse(message.data) as VoiceEvent);
      else this.play(message.data as ArrayBuffer);
    };
    socket.onclose = () => this.onEvent({ type: "closed" });
    await new Promise<void>((resolve, reject) => {
      socket.onopen = () => resolve();
      socket.onerror = () => reject(new Error("the connection was refused"));
    });
    if (this.isStopped) return;
    const microphone = new AudioWorkletNode(this.context, "microphone", { numberOfOutputs: 0 });
    const resampler = new Resampler(this.context.sampleRate, SAMPLE_RATE);
    microphone.port.onmessage = (message) => {
      const samples = resampler.push(message.data as Float32Array);
      if (socket.readyState === WebSocket.OPEN && socket.bufferedAmount < 1_000_000) socket.send(toPcm16(samples));
    };
    this.context.createMediaStreamSource(this.stream).connect(microphone);
  }

  private take(event: VoiceEvent): void {
    if (event.type === "interrupted") this.silence();
    this.onEvent(event);
  }

  private play(bytes: ArrayBuffer): void {
    const context = this.context;
    if (!context) return;
    const samples = fromPcm16(bytes);
    if (samples.length === 0) return;
    const buffer = context.createBuffer(1, samples.length, SAMPLE_RATE);
    buffer.copyToChannel(samples, 0);
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(context.destination);
    const at = Math.max(context.currentTime + 0.03, this.playedUntil);
    source.start(at);
    this.playedUntil = at + buffer.duration;
    this.playing.add(source);
    source.onended = () => {
      this.playing.delete(source);
      this.tellOfSound();
    };
    this.tellOfSound();
  }

  /** Tells if something is heard: the words of an answer come before its sound has ended. */
  private tellOfSound(): void {
    if (!this.isStopped) this.onEvent({ type: "sound", is_heard: this.playing.size > 0 });
  }

  /** Drops the sound that was not played yet. */
  private silence(): void {
    for (const source of this.playing) source.stop();
    this.playing.clear();
    this.playedUntil = 0;
    this.tellOfSound();
  }

  send(frame: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame));
  }

  /** Ends the call, or keeps it from beginning, and lets go of the microphone. */
  stop(): void {
    this.isStopped = true;
    this.send({ type: "close" });
    this.socket?.close();
    this.silence();
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    void this.context?.close();
    this.socket = null;
    this.context = null;
  }
}
