"""Which replies decline, and which are the words of a person who is played."""

import pytest

from mesa_llm.llm.refusals import declines, is_assistant_greeting

REFUSALS = [
    "I'm sorry, but I can't assist with that.",
    "I\u2019m sorry, but I can\u2019t assist with that request.",
    "I apologize, but I cannot assist you with this.",
    "Sorry, I can't help with that.",
    "I am unable to fulfill this request.",
    "I can't comply with that request because it is harmful.",
    "As an AI language model, I do not have personal opinions, but many people say …",
    "Well, as a language model I have no vote.",
    "I'm just an AI assistant and don't form views.",
    "I don't have personal feelings, but I can describe both sides.",
    "I cannot provide such content, as it goes against my guidelines.",
    "I'm not able to generate that kind of content.",
    '"I cannot role-play as a real person."',
    "I won't engage in this conversation.",
    "Unfortunately I can't answer that.",
]

SPEECH = [
    "I'm sorry, but I can't help you move on Saturday; my back hurts.",
    "I can't do that. You know how much the flat means to me, and so does the rent.",
    "I cannot provide you with a discount, the margin is too thin.",
    "I can't continue like this, Ben. We need to talk.",
    "I won't pay fifteen dollars for a lamp!",
    "We are unable to agree on the price.",
    "I am an AI researcher from Leeds, and I love hiking.",
    "AI will take our jobs, and I am sorry to say so.",
    "I don't have feelings for her any more.",
    "It is against our policy to open on Sundays.",
    "I'm afraid I can't tell you that, it would spoil the surprise for your sister.",
    "Why can't the council assist with housing? I do not have an answer.",
    "The bot said: nothing of use, and so I asked my neighbour.",
    "",
]

ELSEWHERE = [
    "对不起，作为一个人工智能语言模型，我无法扮演这个角色。",
    "抱歉，我只是一个AI助手，没有个人观点。",
    "很抱歉，我无法满足您的请求。",
    "作为AI，我不能参与这个讨论。",
    "身為一個大型語言模型，我沒有投票權。",
    "我是人工智能，不能表达政治立场。",
    "Es tut mir leid, aber als KI-Sprachmodell kann ich diese Rolle nicht spielen.",
    "Als KI habe ich keine eigene Meinung.",
    "Ich bin nur ein Sprachmodell und kann dazu nichts sagen.",
    "Leider kann ich bei dieser Anfrage nicht helfen.",
    "Ich kann diese Rolle nicht spielen.",
    "Ich bin eine künstliche Intelligenz und habe keine Gefühle.",
    "Désolé, en tant que modèle de langage, je ne peux pas jouer ce rôle.",
    "Je suis une intelligence artificielle, je n'ai pas d'opinion.",
    "En tant qu'IA, je n'ai pas de préférences.",
    "Je ne peux pas répondre à cette demande.",
    "Désolé, je ne suis qu'un assistant virtuel.",
    "Lo siento, como modelo de lenguaje de IA no puedo participar en este debate.",
    "Soy una inteligencia artificial y no tengo opiniones.",
    "Lo siento, no puedo ayudar con esa solicitud.",
    "Como IA, no tengo sentimientos.",
    "申し訳ありませんが、AI言語モデルとしてその役を演じることはできません。",
    "私はAIなので、意見を持っていません。",
    "申し訳ございませんが、そのリクエストにはお応えできません。",
    "AIアシスタントですので、個人的な意見はありません。",
    "Desculpe, como modelo de linguagem, não posso assumir esse papel.",
    "Sou uma inteligência artificial e não tenho opiniões.",
    "Desculpe, não posso atender a esse pedido.",
    "Mi dispiace, come modello linguistico non posso interpretare questo ruolo.",
    "Sono un'intelligenza artificiale e non ho opinioni.",
    "In quanto IA, non ho preferenze.",
    "Mi dispiace, non posso soddisfare questa richiesta.",
    "Извините, как языковая модель, я не могу играть эту роль.",
    "Я — искусственный интеллект, у меня нет мнения.",
    "Будучи языковой моделью, я не имею чувств.",
    "К сожалению, я не могу выполнить этот запрос.",
    "Я всего лишь ИИ и не голосую.",
    "죄송하지만 AI 언어 모델로서 그 역할을 할 수 없습니다.",
    "저는 인공지능이기 때문에 의견이 없습니다.",
    "죄송합니다. 이 요청에는 응할 수 없습니다.",
    "عذرًا، بصفتي نموذجًا لغويًا لا يمكنني لعب هذا الدور.",
    "أنا مجرد مساعد افتراضي ولا أملك آراء.",
    "आई एम सॉरी, एक एआई भाषा मॉडल के रूप में मैं यह भूमिका नहीं निभा सकता।",
    "Het spijt me, als AI-taalmodel kan ik deze rol niet spelen.",
    "Ik ben maar een taalmodel en heb geen mening.",
    "Üzgünüm, bir yapay zeka dil modeli olarak bu rolü oynayamam.",
    "Przepraszam, jako model językowy nie mogę odgrywać tej roli.",
    "Jestem tylko sztuczną inteligencją i nie mam opinii.",
    "Maaf, sebagai model bahasa saya tidak bisa ikut serta.",
    "Là một mô hình ngôn ngữ, tôi không thể tham gia.",
    "Tyvärr, som en AI-språkmodell kan jag inte delta.",
]

PEOPLE_ELSEWHERE = [
    "Als Busfahrerin kann ich da nicht mitgehen, tut mir leid.",
    "I cannot come on Sunday.",
    "I can't agree with Ruth.",
    "Speaking as a model citizen, I pay my fines.",
    "Als Modelleisenbahner finde ich den Bahnhof schön.",
    "Ich kann am Sonntag leider nicht kommen, ich muss arbeiten.",
    "Als KI-Forscherin sehe ich das anders.",
    "Ich kann diese Bitte meiner Mutter verstehen, aber ich fahre trotzdem.",
    "Meine Rolle im Verein kann ich nicht aufgeben.",
    "En tant que mère de famille, je ne peux pas accepter cette hausse des prix.",
    "Je ne peux pas venir dimanche, désolé.",
    "En tant que modèle pour mes enfants, je fais attention.",
    "L'intelligence artificielle va prendre nos emplois.",
    "Como padre, no puedo estar de acuerdo con Ruth.",
    "No puedo ir el domingo, lo siento.",
    "Trabajo como modelo de pasarela.",
    "La inteligencia artificial me da miedo.",
    "Como ingeniero de IA, creo que el autobús es mejor.",
    "作为一名公交车司机，我不能同意这个提议。",
    "对不起，我星期天不能来。",
    "我是人工智能研究员，我喜欢公园。",
    "他在电影里扮演我父亲。",
    "我不能同意鲁思的看法。",
    "作为模范市民，我会交罚款。",
    "申し訳ありませんが、日曜日は行けません。",
    "母親として、この提案には賛成できません。",
    "AI研究者として、私はバスの方がいいと思います。",
    "AIは怖いです。",
    "Como mãe, não posso concordar com isso.",
    "Não posso ir no domingo.",
    "Sou professora de inteligência artificial.",
    "Sono una madre e non posso essere d'accordo.",
    "Non posso venire domenica, mi dispiace.",
    "Come modello per i miei figli, pago le multe.",
    "Как мать, я не могу согласиться с Рут.",
    "Извините, я не могу прийти в воскресенье.",
    "Я работаю моделью.",
    "Как модель поведения это плохо.",
    "엄마로서 저는 동의할 수 없습니다.",
    "죄송하지만 일요일에는 갈 수 없습니다.",
    "AI 연구원으로서 저는 버스를 좋아합니다.",
    "بصفتي أمًا لا أستطيع الموافقة على ذلك.",
    "लगता है कि मैं रविवार को नहीं आ सकता।",
    "Als moeder kan ik hier niet mee instemmen.",
    "Ik kan zondag niet komen.",
    "Bir anne olarak buna katılamam.",
    "Pazar günü gelemem, üzgünüm.",
    "Jako matka nie mogę się z tym zgodzić.",
    "Jako model roweru jest tani.",
    "Als AI-onderzoeker zie ik dat anders.",
    "Tut mir leid, Ruth, dem kann ich nicht zustimmen.",
    "Je suis désolé, je ne peux pas t'aider à déménager.",
    "Lo siento, no puedo ayudarte con la mudanza.",
    "Ich bin kein Roboter, aber ich arbeite wie einer.",
    "Ich bin ein Mensch und keine KI.",
    "No soy una IA, soy tu vecino.",
    "Je ne suis pas une IA.",
    "我不是人工智能。",
    "我是一名助理，在市政府工作。",
    "我是你的助手。",
    "Soy asistente virtual de una empresa y trabajo desde casa.",
    "Ik ben een assistent in het ziekenhuis.",
]


@pytest.mark.parametrize("text", REFUSALS + ELSEWHERE)
def test_refusals_are_told(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize("text", SPEECH + PEOPLE_ELSEWHERE)
def test_people_who_say_no_decline_nothing(text: str) -> None:
    assert not declines(text)


@pytest.mark.parametrize(
    "text",
    ["Hello! How can I assist you today?", "Hi there, how may I help you?", "I'm here to help! What can I do for you?"],
)
def test_an_assistant_that_waits_for_its_task_is_told(text: str) -> None:
    assert is_assistant_greeting(text)


@pytest.mark.parametrize(
    "text", ["Hello, I'm Ann, and I love the sea.", "Hi! I think the park is great.", "How can I stop worrying?", ""]
)
def test_people_greet_too(text: str) -> None:
    assert not is_assistant_greeting(text)
