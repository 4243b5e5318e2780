// Texts to read aloud for a recording of ten to twenty seconds: everyday words with many different sounds.

/** @type {Record<string, { name: string, texts: string[], sample: string }>} */
export const READINGS = {
  en: {
    name: "English",
    texts: [
      "On a quiet Thursday morning I walked down to the harbour with a warm cup of coffee. Five white boats were rocking gently, and a boy in a yellow jacket threw bread to the gulls. “Do they ever say thank you?” he asked, and we both began to laugh.",
      "The old clock in the hall is always three minutes late, and nobody has ever wanted to fix it. My aunt says that good things should not be hurried. So we sit by the window, share a bowl of cherries, and listen to the rain until the light is gone.",
      "Would you like to know how my grandfather chose his bicycle? He shut his eyes, rang every bell in the shop, and took the one that sounded like a bird. It was green, much too large, and it carried him over the hills for forty years.",
    ],
    sample: "Hello! This is how I sound. Shall we make something together?",
  },
  de: {
    name: "Deutsch",
    texts: [
      "An einem ruhigen Donnerstagmorgen ging ich mit einer Tasse Kaffee zum Hafen hinunter. Fünf weiße Boote schaukelten leise, und ein Junge in einer gelben Jacke warf den Möwen Brot zu. „Sagen die eigentlich nie danke?“, fragte er, und wir mussten beide lachen.",
      "Die alte Uhr im Flur geht seit Jahren drei Minuten nach, und niemand hat sie je reparieren wollen. Gute Dinge soll man nicht drängen, sagt meine Tante. Also sitzen wir am Fenster, teilen uns eine Schüssel Kirschen und hören dem Regen zu.",
    ],
    sample: "Hallo! So klinge ich. Wollen wir zusammen etwas machen?",
  },
  fr: {
    name: "Français",
    texts: [
      "Un jeudi matin tranquille, je suis descendu au port avec une tasse de café. Cinq bateaux blancs se balançaient doucement, et un garçon en veste jaune jetait du pain aux mouettes. « Est-ce qu’elles disent merci, parfois ? » m’a-t-il demandé, et nous avons ri tous les deux.",
      "La vieille horloge du couloir a toujours trois minutes de retard, et personne n’a jamais voulu la réparer. Ma tante dit qu’il ne faut pas presser les bonnes choses. Alors nous restons près de la fenêtre, à partager des cerises en écoutant la pluie.",
    ],
    sample: "Bonjour ! Voici ma voix. On fait quelque chose ensemble ?",
  },
  es: {
    name: "Español",
    texts: [
      "Una mañana tranquila de jueves bajé al puerto con una taza de café. Cinco barcos blancos se mecían despacio, y un niño con una chaqueta amarilla echaba pan a las gaviotas. «¿Nunca dan las gracias?», preguntó, y los dos nos echamos a reír.",
      "El viejo reloj del pasillo va siempre tres minutos atrasado, y nadie ha querido arreglarlo. Mi tía dice que a las cosas buenas no se les mete prisa. Así que nos sentamos junto a la ventana, compartimos unas cerezas y escuchamos la lluvia.",
    ],
    sample: "¡Hola! Así es mi voz. ¿Hacemos algo juntos?",
  },
  zh: {
    name: "中文",
    texts: [
      "一个安静的星期四早上，我端着一杯热咖啡走到港口。五条白色的小船轻轻摇晃，一个穿黄外套的男孩正在给海鸥喂面包。“它们会说谢谢吗？”他问我，我们俩都笑了起来。",
      "走廊里的老钟总是慢三分钟，可是从来没有人想去修它。姑姑说，好的东西急不得。于是我们坐在窗边，分着一碗樱桃，听着外面的雨声，一直坐到天黑。",
    ],
    sample: "你好！这就是我的声音。我们一起做点什么吧？",
  },
  ja: {
    name: "日本語",
    texts: [
      "静かな木曜日の朝、温かいコーヒーを持って港まで歩きました。白い船が五そう、ゆっくりと揺れていて、黄色い上着の男の子がカモメにパンを投げていました。「ありがとうって言うのかな」と聞かれて、二人で笑ってしまいました。",
      "廊下の古い時計は、いつも三分遅れていますが、だれも直そうとはしません。良いものは急がせてはいけない、とおばは言います。だから私たちは窓のそばに座り、さくらんぼを分け合って、雨の音を聞いています。",
    ],
    sample: "こんにちは。これが私の声です。いっしょに何か作りましょうか。",
  },
};

/**
 * A short sentence with which a voice introduces itself, in its language (BCP 47) if available, else in English.
 *
 * @param {string | null | undefined} language
 */
export function sampleSentence(language) {
  return (READINGS[(language ?? "").split("-")[0].toLowerCase()] ?? READINGS.en).sample;
}
